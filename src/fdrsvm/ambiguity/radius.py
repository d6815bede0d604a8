"""How large the balls must be, and what confidence they give (the paper's Proposition 2).

Equation [radius]: with eta the accepted risk of missing the true distribution and
q = log(c1 / eta) / (c2 N),

    epsilon = q^(1/a) if N < log(c1 / eta) / (c2 c3), that is q > c3;  q^(1/P) otherwise.

Balls of these radii, one a client, hold the true mixture with probability at least
prod_g (1 - eta_g), [confidence]. The constants are known to exist, not known: they depend on the
tail exponent a, on the size of the tails and on the number of features P, so there is no honest
default for c1 and c2. In practice the radius is 1/(beta N), or chosen by cross-validation.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from fdrsvm.errors import InvalidInputError
from fdrsvm.maths.arrays import Array, check_positive


def _per_client(value: Any, argument: str) -> Array:
    """A number or one a client, all finite and above 0."""
    if _is_number(value):
        return np.array([check_positive(value, argument)])
    items = list(value) if np.iterable(value) and not isinstance(value, str) else []
    if not items:
        raise InvalidInputError(argument, "must be a number or one a client", f"it is {value!r}")
    return np.array(
        [check_positive(item, f"{argument} (entry {g})") for g, item in enumerate(items)]
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _counts(value: Any, argument: str) -> Array:
    counts = _per_client(value, argument)
    if (counts != np.floor(counts)).any():
        raise InvalidInputError(argument, "must be whole numbers", f"it is {value!r}")
    return counts


def _risks(eta: Any) -> Array:
    risks = _per_client(eta, "eta")
    if (risks >= 1.0).any():
        raise InvalidInputError("eta", "must lie between 0 and 1", f"it is {eta!r}")
    return risks


def _constants(n_features: Any, a: Any, c1: Any, c2: Any, c3: Any) -> tuple[float, ...]:
    exponent = check_positive(a, "a")
    if exponent <= 1.0:
        raise InvalidInputError("a", "the tail exponent must exceed 1", f"it is {a!r}")
    if not _is_number(n_features):
        raise InvalidInputError("n_features", "must be a number", f"it is {n_features!r}")
    return (
        float(_counts(n_features, "n_features")[0]),
        exponent,
        check_positive(c1, "c1"),
        check_positive(c2, "c2"),
        check_positive(c3, "c3"),
    )


def _broadcast(*named: tuple[str, Array]) -> list[Array]:
    try:
        return list(np.broadcast_arrays(*(values for _, values in named)))
    except ValueError:
        sizes = ", ".join(f"{name} {values.size}" for name, values in named)
        raise InvalidInputError(
            named[0][0], "must be a number or have one entry a client", f"lengths: {sizes}"
        ) from None


def wasserstein_radius(
    n_samples: Any,
    n_features: int,
    *,
    eta: Any,
    c1: float,
    c2: float,
    c3: float = 1.0,
    a: float = 2.0,
) -> float | Array:
    """Radius at which a client's ball holds its true distribution with probability 1 - eta.

    Parameters
    ----------
    n_samples : int or one a client
        N_g.
    n_features : int
        P.
    eta : float or one a client
        Accepted risk, between 0 and 1.
    c1, c2, c3 : float
        Constants of equation [radius]; with c3 = 1 the two branches meet.
    a : float
        Tail exponent, above 1: E[exp(||x||^a)] is finite. Bounded data allow any.

    Returns
    -------
    float, or ndarray of shape (n_clients,) if any argument has one entry a client

    Examples
    --------
    >>> from fdrsvm import wasserstein_radius
    >>> round(wasserstein_radius(1000, 4, eta=0.05, c1=2.0, c2=1.0), 4)
    0.2464
    """
    features, exponent, c1, c2, c3 = _constants(n_features, a, c1, c2, c3)
    sizes, risks = _broadcast(("n_samples", _counts(n_samples, "n_samples")), ("eta", _risks(eta)))
    if (c1 <= risks).any():
        raise InvalidInputError("c1", "must exceed eta", f"it is {c1!r}")
    q = np.log(c1 / risks) / (c2 * sizes)
    radii = np.where(q > c3, q ** (1.0 / exponent), q ** (1.0 / features))
    return float(radii[0]) if _is_number(n_samples) and _is_number(eta) else radii


def mowb_confidence(
    epsilon: Any,
    n_samples: Any,
    n_features: int,
    *,
    c1: float,
    c2: float,
    c3: float = 1.0,
    a: float = 2.0,
) -> float:
    """Probability, at least, that the true mixture lies in the mixture of balls.

    The other way round from :func:`wasserstein_radius`: for each client the smallest eta whose
    radius is at most ``epsilon``, then prod_g (1 - eta_g). 0 says that nothing is promised.

    Parameters
    ----------
    epsilon : float or one a client
        Radii.
    n_samples : int or one a client
        N_g. The number of clients is the longer of the two.
    n_features, c1, c2, c3, a
        As for :func:`wasserstein_radius`.

    Examples
    --------
    >>> from fdrsvm import mowb_confidence
    >>> round(mowb_confidence([0.3, 0.3], [1000, 2000], 4, c1=2.0, c2=1.0), 4)
    0.9994
    """
    features, exponent, c1, c2, c3 = _constants(n_features, a, c1, c2, c3)
    radii, sizes = _broadcast(
        ("epsilon", _per_client(epsilon, "epsilon")), ("n_samples", _counts(n_samples, "n_samples"))
    )
    tail, bulk = radii**exponent, np.minimum(radii**features, c3)
    q = np.where(tail > c3, tail, bulk)
    etas = np.minimum(c1 * np.exp(-c2 * sizes * q), 1.0)
    return float(np.prod(1.0 - etas))


def practical_radius(n_samples: Any, *, beta: float = 10.0) -> float | Array:
    """The paper's working rule 1/(beta N_g), with beta = 10 its default.

    Examples
    --------
    >>> from fdrsvm import practical_radius
    >>> practical_radius(100)
    0.001
    """
    radii = 1.0 / (check_positive(beta, "beta") * _counts(n_samples, "n_samples"))
    return float(radii[0]) if _is_number(n_samples) else radii
