"""[pair] as docs/maths.md prints it, in plain Python, against the kernel."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fdrsvm.federated.limits import Limits
from tests.federated.test_legality import random_legal_cut, span_by_kernel


def documented(cut, w, b, R, epsilon, kappa):
    A, v, v_b, sigma = cut
    norm = np.abs(w).sum()
    S = R @ np.abs(w) + abs(b)
    up, down = (A - v_b) / 2.0, (A + v_b) / 2.0
    low = np.maximum(-up * R, -v - down * R)
    high = np.minimum(up * R, -v + down * R)
    hi, lo = np.maximum(w * low, w * high).sum(), np.minimum(w * low, w * high).sum()
    lost = max(0.0, A + v @ w + v_b * b, up * (1.0 - b) - hi, down * (1.0 + b) + v @ w + lo)
    given = 0.0
    if kappa < np.inf:
        K = kappa * norm
        given = min(
            (epsilon - sigma) * norm,
            K * lost / max(1.0 + K / 2.0, K),
            (epsilon - sigma) / kappa * min(2.0 * S, 1.0 + S),
        )
    t = -(v @ w + v_b * b)
    worst = ((A - t / S) * (1.0 + S) + (A + t / S) * max(0.0, 1.0 - S)) / 2.0
    least = epsilon * norm - given + lost + (1.0 - A) * max(0.0, 1.0 - S)
    return least, epsilon * norm + worst + (1.0 - A + 2.0 * epsilon / kappa) * (1.0 + S)


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), kappa=st.sampled_from([0.1, 1.0, 5.0, np.inf]))
def test_the_kernel_computes_what_the_page_says(seed, kappa):
    rng = np.random.default_rng(seed)
    P = int(rng.integers(1, 5))
    R = 10.0 ** rng.uniform(-1, 1, P)
    A, slope = random_legal_cut(rng, R)
    w, b = rng.normal(size=P), float(rng.normal())
    epsilon = float(rng.uniform(0.01, 1.0))
    sigma = epsilon if kappa == np.inf else float(rng.uniform(0.0, epsilon))
    found = span_by_kernel(
        (A, slope, sigma),
        np.append(w, b),
        Limits.checked(R, P),
        "linf",
        floor=epsilon,
        flips=epsilon / kappa,
    )
    expected = documented((A, slope[:-1], slope[-1], sigma), w, b, R, epsilon, kappa)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * (1.0 + R @ np.abs(w)))
