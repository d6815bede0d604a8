"""The worst distribution on a box: its value, proof, subgradient and atoms, [mixture]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.ambiguity._kernels.flips import add, label_worst_case
from fdrsvm.ambiguity._kernels.moves import (
    BLOCK,
    FLIP,
    KEEP,
    Adversary,
    IntArray,
    Samples,
    fill_moves,
    fill_rooms,
)
from fdrsvm.ambiguity._kernels.search import (
    LOWER,
    UPPER,
    cost_of_flips,
    find_worst_moves,
    new_scratch,
)
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1, dual_norm_of


@compiled
def _settle(
    samples: Samples, adversary: Adversary, rows: IntArray, label: Array, step: Array
) -> tuple[float, float, Array]:
    """Loss and cost of one end's moves of ``rows``, and each listed feature's move, by mass."""
    scratch = new_scratch(adversary.features.size)
    room, gain, length, mass = scratch.room, scratch.gain[0], scratch.cost[0], scratch.sums
    moved = np.zeros(adversary.features.size)
    loss, loss_lost, cost, cost_lost = 0.0, 0.0, 0.0, 0.0
    for start in range(0, rows.size, BLOCK):
        block = rows[start : start + BLOCK]
        for k in range(block.size):
            scratch.direction[k] = -label[block[k]]
            scratch.margin[k] = step[block[k]]
        fill_rooms(samples, adversary, block, scratch.direction, room)
        fill_moves(adversary, room, scratch.margin, block.size, gain, length)
        for k in range(block.size):
            n = block[k]
            turn = label[n] * samples.y[n]
            mass[k] = samples.mass[n] if turn != 0.0 else 0.0
            lost = 1.0 - turn * samples.margins[n] + gain[k] if turn != 0.0 else adversary.floor
            loss, loss_lost = add(loss, loss_lost, samples.mass[n] * lost)
            paid = length[k] if turn > 0.0 else length[k] + adversary.kappa
            cost, cost_lost = add(cost, cost_lost, mass[k] * paid if turn != 0.0 else 0.0)
        for i in range(moved.size):
            for k in range(block.size):
                moved[i] += mass[k] * room[i, k]
    return loss, cost, moved


@compiled
def _make_adversary(
    w: Array, low: Array, high: Array, norm: int, kappa: float, floor: float
) -> Adversary:
    """List the features that matter."""
    features = np.flatnonzero(w)
    weight, sign = np.abs(w[features]), np.sign(w[features])
    ends = np.empty((2, features.size))
    for i in range(features.size):
        bottom, top = low[features[i]], high[features[i]]
        ends[0, i], ends[1, i] = (bottom, top) if sign[i] > 0.0 else (top, bottom)
    return Adversary(ends, features, sign, weight, norm, dual_norm_of(w, norm), kappa, floor)


class BoxWorstCase(NamedTuple):
    """The worst distribution on a box, and what follows from it.

    Sample n's mass goes to two atoms, the share ``shares[n]`` to the first; ``labels`` and
    ``steps`` say what each atom is. ``proof`` is the loss this distribution really has.
    """

    value: float
    proof: float
    multiplier: float
    subgradient: Array
    intercept_subgradient: float
    shares: Array
    labels: Array
    steps: Array


@compiled
def _by_labels(samples: Samples, adversary: Adversary, epsilon: float) -> BoxWorstCase:
    """Flips alone use up the budget: nothing moves, and the box does not matter."""
    size, floor = samples.y.size, adversary.floor
    losses, slopes = np.empty((2, size)), np.empty((2, size))
    for n in range(size):
        for branch in range(2):
            margin = samples.margins[n] if branch == KEEP else -samples.margins[n]
            losses[branch, n] = max(1.0 - margin, floor)
            slopes[branch, n] = -1.0 if 1.0 - margin > floor else 0.0
    value, proof, lam, _, shares, residual = label_worst_case(
        losses[KEEP],
        losses[FLIP],
        slopes[KEEP],
        slopes[FLIP],
        samples.y,
        samples.mass,
        epsilon,
        adversary.kappa,
        adversary.dual_norm,
    )
    labels, steps = np.empty((2, size)), np.zeros((2, size))
    labels[LOWER], labels[UPPER] = -samples.y, samples.y
    if adversary.norm == L1:
        steps[:] = np.inf
    return BoxWorstCase(
        value, proof, lam, residual @ samples.X, residual.sum(), shares, labels, steps
    )


@compiled
def _by_moves(
    samples: Samples, adversary: Adversary, epsilon: float, guesses: Array
) -> BoxWorstCase:
    """Some budget is left for moving features; mix the ends of the search to spend it exactly."""
    bracket, moves = find_worst_moves(samples, adversary, epsilon, guesses)
    if bracket.lower[0] < 0.0:
        moves.label[LOWER], moves.step[LOWER] = moves.label[UPPER], moves.step[UPPER]
    label, step = moves.label, moves.step
    everyone = np.arange(samples.y.size)
    loss, cost, moved = _settle(samples, adversary, everyone, label[UPPER], step[UPPER])
    differ = everyone[(label[LOWER] != label[UPPER]) | (step[LOWER] != step[UPPER])]
    low_loss, low_cost, low_moved = _settle(samples, adversary, differ, label[LOWER], step[LOWER])
    high_loss, high_cost, high_moved = _settle(
        samples, adversary, differ, label[UPPER], step[UPPER]
    )
    share = 0.0
    if low_cost > high_cost:
        share = min(max((epsilon - cost) / (low_cost - high_cost), 0.0), 1.0)
    loss += share * (low_loss - high_loss)
    moved += share * (low_moved - high_moved)
    residual = np.empty(samples.y.size)
    for n in range(samples.y.size):
        mixed = label[UPPER, n] + share * (label[LOWER, n] - label[UPPER, n])
        residual[n] = -samples.mass[n] * mixed
    subgradient = residual @ samples.X
    for i in range(moved.size):
        subgradient[adversary.features[i]] += adversary.sign[i] * moved[i]
    # On a kink both ends have the same value, and the upper one, where less moves, rounds less.
    value, lam = bracket.upper[1], bracket.upper[0]
    if 0.0 <= bracket.lower[0] < lam and bracket.lower[1] < value:
        value, lam = bracket.lower[1], bracket.lower[0]
    shares = np.full(samples.y.size, share)
    return BoxWorstCase(value, loss, lam, subgradient, residual.sum(), shares, label, step)


@compiled
def box_worst_case(
    w: Array,
    intercept: float,
    X: Array,
    y: Array,
    mass: Array,
    low: Array,
    high: Array,
    norm: int,
    epsilon: float,
    kappa: float,
    floor: float,
    guesses: Array,
) -> BoxWorstCase:
    """Solve [box-dual]; ``guesses`` are multipliers to try first."""
    adversary = _make_adversary(w, low, high, norm, kappa, floor)
    samples = Samples(X, y, y * (X @ w + intercept), mass)
    if cost_of_flips(samples, adversary) >= epsilon:
        return _by_labels(samples, adversary, epsilon)
    return _by_moves(samples, adversary, epsilon, guesses)


@compiled
def displaced_points(
    w: Array,
    X: Array,
    low: Array,
    high: Array,
    norm: int,
    labels: Array,
    steps: Array,
) -> Array:
    """The points that ``labels`` (0: left alone) and ``steps`` of a worst case stand for."""
    adversary = _make_adversary(w, low, high, norm, np.inf, 0.0)
    nothing = np.empty(0)
    samples = Samples(X, labels, nothing, nothing)  # only X is read
    scratch = new_scratch(adversary.features.size)
    points, rows = X.copy(), np.arange(labels.size)
    for start in range(0, rows.size, BLOCK):
        block = rows[start : start + BLOCK]
        direction = -labels[start : start + BLOCK]
        fill_rooms(samples, adversary, block, direction, scratch.room)
        fill_moves(
            adversary,
            scratch.room,
            steps[start : start + BLOCK],
            block.size,
            scratch.gain[0],
            scratch.cost[0],
        )
        for k in range(block.size):
            for i in range(adversary.features.size):
                p, move = adversary.features[i], scratch.room[i, k]
                x = X[start + k, p]
                target = x + direction[k] * adversary.sign[i] * move
                if abs(target - x) > move:  # rounded outwards: the radius is a promise
                    target = np.nextafter(target, x)
                points[start + k, p] = min(max(target, low[p]), high[p])
    return points


@compiled
def hinge_of_atoms(
    w: Array,
    intercept: float,
    X: Array,
    y: Array,
    mass: Array,
    low: Array,
    high: Array,
    norm: int,
    shares: Array,
    labels: Array,
    steps: Array,
) -> tuple[float, Array, float]:
    """Mean of the hinge over a worst case's atoms, and its subgradient in w and b."""
    mean, slope, slope_b = 0.0, np.zeros(w.size), 0.0
    for end in range(2):
        points = displaced_points(w, X, low, high, norm, labels[end], steps[end])
        scores = points @ w
        for n in range(y.size):
            weight = mass[n] * (shares[n] if end == LOWER else 1.0 - shares[n])
            label = labels[end, n] if labels[end, n] != 0.0 else y[n]
            loss = 1.0 - label * (scores[n] + intercept)
            if loss > 0.0 and weight > 0.0:
                mean += weight * loss
                slope_b -= weight * label
                for p in range(w.size):
                    slope[p] -= weight * label * points[n, p]
    return mean, slope, slope_b
