"""
Does joining pay? Plant by plant
================================

A federation is worthwhile for a plant only if it gains something. Here there are one large plant
and three small ones with few faults each, and every plant has seen a different size of leak. Each
compares three models: its own, the federated one, and one trained on all rows pooled, for which
everybody would have to give their rows away.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score

from fdrsvm import DRSVC, FDRSVC
from fdrsvm.datasets import make_pump

BALL = {"epsilon": 0.005, "kappa": 1.0, "norm": "l2"}

pump = make_pump("both", random_state=0)
X, y, plants = pump.X_normalised, pump.y, pump.clients
X_test, y_test = pump.X_test_normalised, pump.y_test
names = [f"plant {g + 1}" for g in range(4)]

federated = FDRSVC(**BALL).fit(X, y, clients=plants)
pooled = DRSVC(**BALL).fit(X, y)
alone = [DRSVC(**BALL).fit(X[plants == g], y[plants == g]) for g in range(4)]

# %%
# Leaks of all sizes are what the plant may meet tomorrow; the size that it knows is what it has
# met so far.


def scores(rows):
    """F-1 on these test rows: alone by plant, federated, pooled."""
    by_model = [f1_score(y_test[rows], m.predict(X_test[rows])) for m in (federated, pooled)]
    return [f1_score(y_test[rows], m.predict(X_test[rows])) for m in alone], *by_model


healthy = pump.severity_test == 0.0
everything = np.ones(len(y_test), dtype=bool)
own_alone, in_federation, in_pool = scores(everything)
on_own = []
for g, size in enumerate(pump.client_severities):
    known = healthy | (pump.severity_test == size)
    own, joined, _ = scores(known)
    on_own.append((own[g], joined))

print(f"{'':<8}{'rows':>6}{'alone':>8}{'joined':>8}{'gain':>8}{'on its own leak':>18}")
for g, name in enumerate(names):
    n = np.count_nonzero(plants == g)
    gain, own_gain = in_federation - own_alone[g], on_own[g][1] - on_own[g][0]
    print(
        f"{name:<8}{n:>6}{own_alone[g]:>8.3f}{in_federation:>8.3f}"
        f"{100 * gain:>+8.1f}{100 * own_gain:>+18.1f}"
    )
better = sum(in_federation > score for score in own_alone)
print(f"F-1 on leaks of all sizes: joining pays for {better} of {len(names)} plants")
print(f"all rows pooled: {100 * (in_pool - in_federation):+.1f} points against joining")

# %%
# A plant that knows one leak well may lose on that leak, and gain on those it has never seen. The
# picture shows which plants do; whether that is worth it is for the plant to decide.

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True, layout="constrained")
places = np.arange(len(names))
pairs = (
    ("leaks of all sizes", own_alone, [in_federation] * 4),
    ("the leak it has seen", [a for a, _ in on_own], [b for _, b in on_own]),
)
for ax, (title, before, after) in zip(axes, pairs, strict=True):
    ax.bar(places - 0.2, before, 0.38, label="alone", color="#8ab6d6")
    ax.bar(places + 0.2, after, 0.38, label="joined", color="#1f5f8b")
    ax.set_xticks(places, names)
    ax.set_title(title)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("F-1 on test rows")
axes[0].axhline(in_pool, color="0.4", linestyle="dashed", label="pooled")
axes[0].set_ylim(0.0, 1.25)
axes[0].legend(frameon=False, ncols=3, loc="upper left")
plt.show()
