"""Differential privacy: what one row can change, how much noise hides it, what rounds spend.

A round adds Gaussian noise of standard deviation sigma times the sensitivity; sigma is the noise
multiplier. T rounds compose to what one round at sigma / sqrt(T) would spend, [composition].
"""

from __future__ import annotations

import math
from typing import Any

from fdrsvm.core.arrays import check_count, check_positive
from fdrsvm.errors import InvalidInputError, UnsupportedError

_TOLERANCE = 1e-3  # of a noise multiplier
_LEAST_NOISE = 0.05


def subgradient_sensitivity(
    n_samples: int,
    radius: float,
    *,
    n_features: int,
    norm: str,
    epsilon: float,
    kappa: float,
    fit_intercept: bool = False,
) -> float:
    """How far one replaced row can move the subgradient of the worst-case risk: [sensitivity].

    (2 R + min(1, N epsilon/kappa) max(2 R, kappa S)) / N, the second term only if labels may flip,
    in the Euclidean norm over features and intercept.

    Parameters
    ----------
    n_samples : int
        N, which is not secret; every row has the mass 1/N.
    radius : float
        No row is longer than this in the Euclidean norm.
    n_features, norm, epsilon, kappa
        The client's ball.
    fit_intercept : bool
        Then a row has one entry more, 1.
    """
    length = math.hypot(check_positive(radius, "radius"), 1.0 if fit_intercept else 0.0)
    of_row = 2.0 * length
    if math.isinf(kappa):
        return of_row / n_samples
    longest_sign = math.sqrt(n_features) if norm == "linf" else 1.0
    flips = min(1.0, n_samples * epsilon / kappa)
    return (of_row + flips * max(of_row, kappa * longest_sign)) / n_samples


def epsilon_spent(noise_multiplier: float, rounds: int, delta: float) -> float:
    """The epsilon at ``delta`` of this many noisy rounds, by dp-accounting; needs that package.

    Replacing one row of one client changes what the server learns by a factor of at most
    exp(epsilon), except with a probability of delta. Several models in a round, as one-vs-rest
    trains them, are as many noisy rounds: count each.
    """
    share = check_positive(noise_multiplier, "noise_multiplier") / math.sqrt(
        check_count(rounds, "rounds")
    )
    if share < _LEAST_NOISE:
        raise InvalidInputError(
            "noise_multiplier",
            f"must be at least {_LEAST_NOISE:g} sqrt(rounds); with less nothing is private",
            f"it is {noise_multiplier!r}",
        )
    accounting = _accounting()
    accountant = accounting.pld.PLDAccountant()
    accountant.compose(accounting.GaussianDpEvent(share))
    return float(accountant.get_epsilon(_check_delta(delta)))


def noise_multiplier_for(epsilon: float, delta: float, rounds: int) -> float:
    """The least noise multiplier with which this many rounds spend at most ``epsilon``."""
    accounting = _accounting()
    root = math.sqrt(check_count(rounds, "rounds"))
    check_positive(epsilon, "epsilon")
    # More noise than one round needs, by zero-concentrated privacy (Bun and Steinke 2016).
    log = math.log(1.0 / _check_delta(delta))
    upper = math.sqrt(0.5) / (math.sqrt(log + epsilon) - math.sqrt(log))
    lower = upper / 2.0
    while epsilon_spent(lower, 1, delta) <= epsilon:
        lower /= 2.0
    found = accounting.calibrate_dp_mechanism(
        accounting.pld.PLDAccountant,
        accounting.GaussianDpEvent,
        epsilon,
        delta,
        accounting.ExplicitBracketInterval(lower, upper),
        tol=_TOLERANCE * lower,
    )
    return root * float(found)


def _check_delta(delta: float) -> float:
    if not 0.0 < check_positive(delta, "delta") < 1.0:
        raise InvalidInputError("delta", "must lie between 0 and 1", f"it is {delta!r}")
    return delta


def _accounting() -> Any:
    """dp-accounting, imported when asked for: nothing else needs it."""
    try:
        import dp_accounting
        import dp_accounting.pld
    except ImportError as error:
        raise UnsupportedError(
            f"accounting for privacy needs the package dp-accounting ({error}); "
            "run pip install 'fdr-svm[privacy]'"
        ) from None
    return dp_accounting
