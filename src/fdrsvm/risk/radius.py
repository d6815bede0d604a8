"""How large the balls must be, what confidence they give, and a bound that needs no ball.

Equation [radius]: with eta the accepted risk of missing the true distribution and
q = log(c1 / eta) / (c2 N),

    epsilon = q^(1/a) if N < log(c1 / eta) / (c2 c3), that is q > c3;
              min(r(q), c3^(1/a)) otherwise, where
    r(q)    = q^(1/max(P, 2)), and for P = 2 the r with (r / log(2 + 1/r))^2 = q.

The paper's Proposition 2 prints q^(1/P) for r: true from P = 3 on, but no empirical distribution
comes closer to the true one than about N^(-1/2) (Fournier and Guillin 2015, Theorem 2; Mohajerin
Esfahani and Kuhn 2018, Theorem 3.4).

Balls of these radii, one per client, hold the true mixture with probability at least
prod_g (1 - eta_g) if clients are independent, and 1 - sum_g eta_g in any case, [confidence]. Then
the true risk is at most F(w), for all models at once. The constants are known to exist, not known:
they depend on the tail exponent a, on the size of the tails, on kappa, which must be finite, and on
the number of features P, so there is no honest default for c1 and c2. In practice the radius is
1/(beta N), or chosen by cross-validation. All constants of [generalisation] are known.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_flag,
    check_masses,
    check_non_negative,
    check_positive,
    check_vector,
)
from fdrsvm.core.losses import LOSSES
from fdrsvm.core.vectors import NORMS, Norm, norm_rows
from fdrsvm.errors import InvalidInputError

# The iteration for P = 2 gains a factor of 2.6 per step, so that this is far below rounding.
_LOGARITHM_STEPS = 60


def _per_client(value: Any, argument: str) -> Array:
    """A number or one per client, all finite and above 0."""
    if _is_number(value):
        return np.array([check_positive(value, argument)])
    items = list(value) if np.iterable(value) and not isinstance(value, str) else []
    if not items:
        raise InvalidInputError(argument, "must be a number or one per client", f"it is {value!r}")
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


def _broadcast(**named: Array) -> list[Array]:
    try:
        return list(np.broadcast_arrays(*named.values()))
    except ValueError:
        sizes = ", ".join(f"{name} {values.size}" for name, values in named.items())
        raise InvalidInputError(
            next(iter(named)), "must be a number or have one entry per client", f"lengths: {sizes}"
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

    Whenever it does, the true risk of every model is at most its worst-case risk in the ball, for
    all models at once and so also for the one that was trained on the same samples. kappa must be
    finite: where no label may flip, a ball holds only distributions with the very shares of labels
    that the samples have.

    Parameters
    ----------
    n_samples : int or one per client
        N_g.
    n_features : int
        P.
    eta : float or one per client
        Accepted risk, between 0 and 1.
    c1, c2, c3 : float
        Constants of equation [radius]; with c3 = 1 the two branches meet, but for P = 2.
    a : float
        Tail exponent, above 1: E[exp(||x||^a)] is finite. Bounded data allow any.

    Returns
    -------
    float, or ndarray of shape (n_clients,) if any argument has one entry per client

    Examples
    --------
    >>> from fdrsvm import wasserstein_radius
    >>> round(wasserstein_radius(1000, 4, eta=0.05, c1=2.0, c2=1.0), 4)
    0.2464
    """
    features, exponent, c1, c2, c3 = _constants(n_features, a, c1, c2, c3)
    sizes, risks = _counts(n_samples, "n_samples"), _per_client(eta, "eta")
    sizes, risks = _broadcast(n_samples=sizes, eta=risks)
    if (risks >= 1.0).any():
        raise InvalidInputError("eta", "must lie between 0 and 1", f"it is {eta!r}")
    if (c1 <= risks).any():
        raise InvalidInputError("c1", "must exceed eta", f"it is {c1!r}")
    q = np.log(c1 / risks) / (c2 * sizes)
    if features != 2.0:
        bulk = q ** (1.0 / max(features, 2.0))
    else:
        # u = log r is the fixed point of u -> log(q)/2 + log(log(2 + 1/r)), whose slope is
        # -1 / ((2 r + 1) log(2 + 1/r)), between -0.38 and 0 wherever it is taken.
        half = u = 0.5 * np.log(q)
        for _ in range(_LOGARITHM_STEPS):
            u = half + np.log(np.logaddexp(np.log(2.0), -u))
        bulk = np.exp(u)
    bulk = np.minimum(bulk, c3 ** (1.0 / exponent))
    radii = np.where(q > c3, q ** (1.0 / exponent), bulk)
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
    independent: bool = True,
) -> float:
    """Probability, at least, that the true mixture lies in the mixture of balls.

    The other way round from :func:`wasserstein_radius`: for each client the smallest eta whose
    radius is at most ``epsilon``, then prod_g (1 - eta_g), or 1 - sum_g eta_g. 0 says that nothing
    is promised.

    With that probability the true risk of every model, a mixture of the clients' true risks, is at
    most its worst-case risk F(w): for all models at once, and so for the trained one. kappa must be
    finite.

    Parameters
    ----------
    epsilon : float or one per client
        Radii.
    n_samples : int or one per client
        N_g. The number of clients is the longer of the two.
    n_features, c1, c2, c3, a
        As for :func:`wasserstein_radius`.
    independent : bool
        Whether the samples of different clients are independent of each other. If they are not
        (plants that share machines, staff or suppliers), say False: the confidence is then that of
        the union bound, 1 - sum_g eta_g, which holds whatever they have in common.

    Examples
    --------
    >>> from fdrsvm import mowb_confidence
    >>> round(mowb_confidence([0.3, 0.3], [1000, 2000], 4, c1=2.0, c2=1.0), 4)
    0.9994
    """
    features, exponent, c1, c2, c3 = _constants(n_features, a, c1, c2, c3)
    radii, sizes = _per_client(epsilon, "epsilon"), _counts(n_samples, "n_samples")
    radii, sizes = _broadcast(epsilon=radii, n_samples=sizes)
    check_flag(independent, "independent")
    # The q whose radius this is, by the tail's branch and by the bulk's.
    tail = radii**exponent
    if features != 2.0:
        bulk = np.minimum(radii ** max(features, 2.0), c3)
    else:
        bulk = np.minimum((radii / np.logaddexp(np.log(2.0), -np.log(radii))) ** 2, c3)
    # From c3^(1/a) on, where the bulk's radius rests, all q up to c3 are within epsilon. The root
    # and the power undo each other to a few roundings of a, of log c3 and of the result.
    slack = 4.0 * np.finfo(float).eps * (1.0 + exponent + abs(math.log(c3)))
    q = np.where(tail >= c3 * (1.0 - slack), np.maximum(tail, c3), bulk)
    etas = np.minimum(c1 * np.exp(-c2 * sizes * q), 1.0)
    return float(np.prod(1.0 - etas)) if independent else max(1.0 - float(np.sum(etas)), 0.0)


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


def generalisation_bound(
    n_samples: Any,
    limits: Any,
    *,
    model_size: float,
    intercept_size: float = 0.0,
    norm: Norm = "linf",
    confidence: float = 0.95,
    loss: str = "hinge",
    client_weights: Any = None,
) -> float:
    """How far the true risk can lie above the risk on the samples, for all models at once.

    The number t of [generalisation]: with probability at least ``confidence`` over the draw of the
    samples, every model with ``||w||_* <= model_size`` and ``|b| <= intercept_size`` has a true
    risk of at most its mean loss on the samples plus t, and so of at most its worst-case risk plus
    t, whatever the radius. With 1/n = sum_g alpha_g^2 / N_g, eta = 1 - confidence and
    M = model_size ||R|| + intercept_size,

        t = 2 (model_size K + intercept_size) / sqrt(n)
            + (loss(-M) - loss(M)) sqrt(log(1/eta) / (2 n)),
        K = sum_j R_j for l1, sqrt(sum_j R_j^2) for l2, and for linf the smaller of that and
            max_j R_j sqrt(2 log(2 P)).

    Nothing is known of the samples but that they are independent, keep to the limits, and are drawn
    from the distributions that the model will meet, wrong labels included. The sizes must be fixed
    before the samples are seen.

    Parameters
    ----------
    n_samples : int or one per client
        N_g.
    limits : array of shape (n_features,)
        R: ``|x_j| <= R_j`` for every sample, as agreed beforehand.
    model_size : float
        Bound on the dual norm of w. Without a support the minimiser's is at most
        loss(0) / sum_g alpha_g epsilon_g, since F(w) is at least sum_g alpha_g epsilon_g ||w||_*.
    intercept_size : float
        Bound on the size of the intercept; 0 for models without one.
    norm : {"l1", "l2", "linf"}
        The transport norm; its dual norm measures w.
    confidence : float
        1 - eta, between 0 and 1.
    loss : {"hinge", "smooth_hinge", "logistic"}
        What the risk is the mean of.
    client_weights : array of shape (n_clients,), optional
        alpha_g, scaled to sum to 1; equal if left out.

    Examples
    --------
    >>> from fdrsvm import generalisation_bound
    >>> round(generalisation_bound(10_000, [1.0] * 14, model_size=2.0, intercept_size=1.0), 4)
    0.1722
    """
    sizes = _counts(n_samples, "n_samples")
    alphas = check_masses(client_weights, sizes.size, "client_weights")
    R = check_vector(limits, "limits", int(np.size(limits)), "features")
    if np.ndim(limits) == 0 or R.size == 0 or (R < 0.0).any():
        raise InvalidInputError(
            "limits", "must have one number per feature, none below 0", f"they are {limits!r}"
        )
    B = check_non_negative(model_size, "model_size")
    B_b = check_non_negative(intercept_size, "intercept_size")
    check_choice(norm, "norm", NORMS)
    margin_loss = LOSSES[check_choice(loss, "loss", tuple(LOSSES))]
    eta = 1.0 - check_positive(confidence, "confidence")
    if eta <= 0.0:
        raise InvalidInputError("confidence", "must lie between 0 and 1", f"it is {confidence!r}")
    M = B * float(norm_rows(R[None], norm)[0]) + B_b
    low, high = (float(value) for value in margin_loss.value(np.array([M, -M])))
    per_sample = float(np.sqrt(np.sum(alphas**2 / sizes)))  # 1 / sqrt(n)
    # E || sum_n s_n x_n || <= K sqrt(N) for random signs s_n.
    K = float(R.sum()) if norm == "l1" else float(np.linalg.norm(R))
    if norm == "linf":
        K = min(K, float(R.max()) * math.sqrt(2.0 * math.log(2.0 * R.size)))
    complexity = 2.0 * float(margin_loss.lipschitz) * (B * K + B_b)
    return per_sample * (complexity + (high - low) * math.sqrt(-0.5 * math.log(eta)))
