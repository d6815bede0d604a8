"""The multiplier at which an adversary has spent its transport budget inside a box, [box-dual].

The objective is convex in the multiplier and its slope is ``epsilon - mean transport cost``. The
search keeps a bracket, drops every sample whose worst case is linear on it (its part is summed once
and for all), and stops when the tangents at the two ends prove the minimum to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.ambiguity._kernels.flips import add
from fdrsvm.ambiguity._kernels.moves import (
    BLOCK,
    FLIP,
    KEEP,
    Adversary,
    IntArray,
    Samples,
    fill_moves,
    fill_rooms,
    fill_steps,
)
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1

LOWER, UPPER = 0, 1
_MAX_STEPS = 500


class Active(NamedTuple):
    """Samples whose worst case still bends inside the bracket: the first ``size[0]`` places.

    ``cost_at`` holds their costs at the lower and the upper end; ``value, cost, label, step`` are
    the latest look: the worst loss net of the multiplier times the cost, and the move behind it.
    """

    rows: IntArray
    size: IntArray
    cost_at: Array
    value: Array
    cost: Array
    label: Array
    step: Array


class Moves(NamedTuple):
    """What is done to each sample at the lower and the upper end of the bracket.

    ``label`` is the new label, or 0 where the sample is left alone with the loss at its floor.
    """

    label: Array
    step: Array


class Bracket(NamedTuple):
    """Multiplier, objective and slope at both ends, and the samples that are linear in between.

    ``lower[0]`` is negative until a lower end is known. ``line`` is the linear samples' total
    value at multiplier zero, and their total cost.
    """

    lower: Array
    upper: Array
    line: Array


class Scratch(NamedTuple):
    """Room for one block; ``step, gain, cost`` have a row for keeping and one for flipping."""

    room: Array
    margin: Array
    direction: Array
    sums: Array
    step: Array
    gain: Array
    cost: Array


@compiled
def new_scratch(n_listed: int) -> Scratch:
    """A block's room; flipping gains nothing unless looked at, for labels may be beyond price."""
    lanes, gain, cost = np.empty((3, BLOCK)), np.empty((2, BLOCK)), np.zeros((2, BLOCK))
    gain[FLIP] = -np.inf
    return Scratch(
        np.empty((n_listed, BLOCK)),
        lanes[0],
        lanes[1],
        lanes[2],
        np.empty((2, BLOCK)),
        gain,
        cost,
    )


@compiled
def _look_at_block(
    samples: Samples,
    adversary: Adversary,
    rows: IntArray,
    lam: float,
    dearest: bool,
    scratch: Scratch,
) -> None:
    """Best step, its gain and its length, for each row kept and each row flipped."""
    for branch in range(2 if adversary.kappa < np.inf else 1):
        turn = -1.0 if branch == KEEP else 1.0
        for k in range(rows.size):
            scratch.direction[k] = turn * samples.y[rows[k]]
        step, gain, cost = scratch.step[branch], scratch.gain[branch], scratch.cost[branch]
        fill_rooms(samples, adversary, rows, scratch.direction, scratch.room)
        fill_steps(adversary, scratch.room, lam, dearest, rows.size, scratch.sums, step)
        fill_moves(adversary, scratch.room, step, rows.size, gain, cost)


@compiled
def _choose(
    margin: Array, adversary: Adversary, lam: float, dearest: bool, width: int, scratch: Scratch
) -> None:
    """Worst of keeping, flipping, or leaving each sample at the floor, into the first places.

    Of several maximisers the cheapest is taken, or the dearest if asked. The test for a flip is
    written as the gains of ``flip_shares`` are, so that both decide alike when nothing moves.
    There are no branches, since which way a sample goes cannot be predicted.
    """
    value, turn, gain, cost, step = (
        scratch.sums,
        scratch.direction,
        scratch.gain,
        scratch.cost,
        scratch.step,
    )
    floor, kappa = adversary.floor, adversary.kappa
    toll = kappa * lam
    for k in range(width):
        kept = 1.0 - margin[k] + (gain[KEEP, k] - lam * cost[KEEP, k])
        keep = (kept > floor) | ((kept == floor) & dearest)
        best = kept if keep else floor
        price = cost[KEEP, k] if keep else 0.0
        flipped = 1.0 + margin[k] + (gain[FLIP, k] - lam * cost[FLIP, k])
        flip_price = cost[FLIP, k] + kappa
        extra = flipped - best
        flip = (extra > toll) | ((extra == toll) & ((flip_price > price) == dearest))
        value[k] = flipped - toll if flip else best
        cost[KEEP, k] = flip_price if flip else price
        step[KEEP, k] = step[FLIP, k] if flip else step[KEEP, k]
        turn[k] = -1.0 if flip else (1.0 if keep else 0.0)


@compiled
def _look(
    samples: Samples,
    adversary: Adversary,
    active: Active,
    line: Array,
    lam: float,
    dearest: bool,
    scratch: Scratch,
) -> tuple[float, float]:
    """Mean worst loss net of ``lam`` times the cost, and mean cost, over all samples."""
    value, value_lost, cost, cost_lost = line[0] - line[1] * lam, 0.0, line[1], 0.0
    for start in range(0, active.size[0], BLOCK):
        rows = active.rows[start : min(start + BLOCK, active.size[0])]
        _look_at_block(samples, adversary, rows, lam, dearest, scratch)
        for k in range(rows.size):
            scratch.margin[k] = samples.margins[rows[k]]
        _choose(scratch.margin, adversary, lam, dearest, rows.size, scratch)
        block_value, block_cost = 0.0, 0.0
        for k in range(rows.size):
            n, i = rows[k], start + k
            active.value[i] = scratch.sums[k]
            active.cost[i] = scratch.cost[KEEP, k]
            active.label[i] = scratch.direction[k] * samples.y[n]
            active.step[i] = scratch.step[KEEP, k]
            block_value += samples.mass[n] * active.value[i]
            block_cost += samples.mass[n] * active.cost[i]
        value, value_lost = add(value, value_lost, block_value)
        cost, cost_lost = add(cost, cost_lost, block_cost)
    return value, cost


@compiled
def _store(active: Active, moves: Moves, end: int) -> None:
    """Make the latest look the state of one end of the bracket."""
    for i in range(active.size[0]):
        n = active.rows[i]
        active.cost_at[end, i] = active.cost[i]
        moves.label[end, n] = active.label[i]
        moves.step[end, n] = active.step[i]


@compiled
def _prune(samples: Samples, active: Active, moves: Moves, line: Array, lam: float) -> None:
    """Move samples with one slope at both ends to ``line``; their latest move serves both ends.

    A convex function with the same slope at both ends of an interval is linear between them.
    """
    kept, value_lost, cost_lost = 0, 0.0, 0.0
    for i in range(active.size[0]):
        n = active.rows[i]
        if active.cost_at[LOWER, i] == active.cost_at[UPPER, i]:
            at_zero = active.value[i] + active.cost[i] * lam
            line[0], value_lost = add(line[0], value_lost, samples.mass[n] * at_zero)
            line[1], cost_lost = add(line[1], cost_lost, samples.mass[n] * active.cost[i])
            moves.label[:, n] = active.label[i]
            moves.step[:, n] = active.step[i]
        else:
            active.rows[kept] = n
            active.cost_at[LOWER, kept] = active.cost_at[LOWER, i]
            active.cost_at[UPPER, kept] = active.cost_at[UPPER, i]
            kept += 1
    active.size[0] = kept


# --------------------------------------------------------------------------------- the multiplier


@compiled
def _flips_unmoved(margin: float, adversary: Adversary) -> bool:
    """Whether to flip the label at the dual norm, where nothing is worth moving."""
    gain = 1.0 + margin - max(adversary.floor, 1.0 - margin)
    return gain > adversary.kappa * adversary.dual_norm


@compiled
def cost_of_flips(samples: Samples, adversary: Adversary) -> float:
    """Mean cost of all flips that pay at the dual norm."""
    mass, lost = 0.0, 0.0
    for n in range(samples.y.size):
        if _flips_unmoved(samples.margins[n], adversary):
            mass, lost = add(mass, lost, samples.mass[n])
    return adversary.kappa * mass if mass > 0.0 else 0.0


@compiled
def _activate(
    samples: Samples, adversary: Adversary, epsilon: float, moves: Moves
) -> tuple[Active, Bracket]:
    """All samples, and a bracket that reaches up to the dual norm with nothing moved there."""
    top, size = adversary.dual_norm, samples.y.size
    cost_at, latest = np.empty((2, size)), np.empty((4, size))
    value, value_lost, cost, cost_lost = epsilon * top, 0.0, 0.0, 0.0
    for n in range(size):
        margin, flipped = samples.margins[n], _flips_unmoved(samples.margins[n], adversary)
        loss = 1.0 + margin - adversary.kappa * top if flipped else 1.0 - margin
        cost_at[LOWER, n] = np.inf
        cost_at[UPPER, n] = adversary.kappa if flipped else 0.0
        turn = -1.0 if flipped else 1.0
        moves.label[UPPER, n] = turn * samples.y[n] if loss > adversary.floor else 0.0
        moves.step[UPPER, n] = np.inf if adversary.norm == L1 else 0.0
        value, value_lost = add(value, value_lost, samples.mass[n] * max(loss, adversary.floor))
        cost, cost_lost = add(cost, cost_lost, samples.mass[n] * cost_at[UPPER, n])
    active = Active(
        np.arange(size),
        np.array([size]),
        cost_at,
        latest[0],
        latest[1],
        latest[2],
        latest[3],
    )
    bracket = Bracket(
        np.array([-1.0, 0.0, 0.0]), np.array([top, value, epsilon - cost]), np.zeros(2)
    )
    return active, bracket


@compiled
def _probe(
    samples: Samples,
    adversary: Adversary,
    active: Active,
    bracket: Bracket,
    moves: Moves,
    epsilon: float,
    lam: float,
    scratch: Scratch,
) -> bool:
    """Move an end of the bracket to ``lam``; True if ``lam`` is the minimiser, and both are.

    At the dual norm every sample may turn at once, and its cheapest choice, not to move, is known:
    there the dearest is looked at. Other kinks are hit by accident only; the tangents find them.
    """
    lower, upper = bracket.lower, bracket.upper
    dearest = lam == upper[0]
    value, cost = _look(samples, adversary, active, bracket.line, lam, dearest, scratch)
    beyond = cost > epsilon or (dearest and cost == epsilon)
    end = lower if beyond else upper
    end[0], end[1], end[2] = lam, value + epsilon * lam, epsilon - cost
    _store(active, moves, LOWER if beyond else UPPER)
    if beyond and dearest:
        return True
    if lam == 0.0 and not beyond:
        lower[:] = upper
        _store(active, moves, LOWER)
        return True
    _prune(samples, active, moves, bracket.line, lam)
    return False


@compiled
def _next_multiplier(bracket: Bracket, adversary: Adversary, step: int) -> float:
    """Where to look next, or -1 if the ends already prove the minimum to rounding.

    Where the objective is piecewise linear its tangents end the search; where it is smooth the
    minimiser of the cubic through values and slopes is much faster. They take turns.
    """
    high, high_value, high_slope = bracket.upper[0], bracket.upper[1], bracket.upper[2]
    low, low_value, low_slope = bracket.lower[0], bracket.lower[1], bracket.lower[2]
    if low < 0.0:
        return 0.5 * high if high == adversary.dual_norm else 0.0
    width, turn = high - low, high_slope - low_slope
    advance = (low_value - high_value + high_slope * width) / turn
    if advance < 1e-7 * width:
        # The minimiser is so near the lower end that the difference of values is mostly rounding.
        lam = low + 1e-6 * width
        return float(lam) if low < lam < high else -1.0
    bound = low_value + low_slope * advance
    scale = min(abs(low_value), abs(high_value)) + abs(low_slope * advance)
    if min(low_value, high_value) - bound <= 1e-16 * scale:
        return -1.0
    if step % 2 == 0:
        middle = low_slope + high_slope - 3.0 * (high_value - low_value) / width
        root = np.sqrt(max(middle * middle - low_slope * high_slope, 0.0))
        lam = low + width * (1.0 - (high_slope + root - middle) / (turn + 2.0 * root))
        if low < lam < high:  # not so if slopes are so steep that their squares overflow
            return float(lam)
    lam = low + advance
    return float(lam) if low < lam < high else -1.0


@compiled
def find_worst_moves(
    samples: Samples, adversary: Adversary, epsilon: float, guesses: Array
) -> tuple[Bracket, Moves]:
    """Close the bracket: afterwards its two ends' moves, mixed, are worst and cost ``epsilon``.

    ``guesses`` are looked at first; inf stands for the dual norm, above which nothing moves. A bad
    guess costs time, never exactness.
    """
    n_samples = samples.y.size
    moves = Moves(np.empty((2, n_samples)), np.empty((2, n_samples)))
    active, bracket = _activate(samples, adversary, epsilon, moves)
    if adversary.dual_norm == 0.0:
        return bracket, moves
    scratch = new_scratch(adversary.features.size)
    lam = 0.0
    for step in range(-guesses.size, _MAX_STEPS):
        if step < 0:
            lam = min(guesses[step], adversary.dual_norm)
            if not bracket.lower[0] < lam <= bracket.upper[0]:
                continue
        else:
            lam = _next_multiplier(bracket, adversary, step)
        if lam < 0.0 or _probe(samples, adversary, active, bracket, moves, epsilon, lam, scratch):
            break
    return bracket, moves
