"""
A worst case you can see
========================

The worst distribution within a Wasserstein ball, in two dimensions: which rows the adversary
moves, how far, and whose label it flips. It has a budget, the mean distance ``epsilon``, and
spends it where it raises the loss most. A flipped label costs ``kappa``.
"""

import matplotlib.pyplot as plt
import numpy as np

from fdrsvm import DRSVC, worst_case_distribution, worst_case_risk

EPSILON, KAPPA, N = 0.12, 0.5, 24
COLOURS = {1: "#b3541e", -1: "#1f5f8b"}

rng = np.random.default_rng(3)
centres = np.where(rng.random(N)[:, None] < 0.5, [0.3, 0.6], [0.7, 0.4])
X = np.clip(centres + 0.11 * rng.normal(size=(N, 2)), 0.0, 1.0)
y = np.where(centres[:, 0] > 0.5, 1, -1)

model = DRSVC(epsilon=EPSILON, kappa=KAPPA, norm="l2", support="unit-box").fit(X, y)
w, b = model.coef_[0], float(model.intercept_[0])
plain = worst_case_risk(w, X, y, intercept=b, epsilon=0.0).value
print(f"mean loss of the model on the rows as they are: {plain:.3f}")

# %%
# The norms differ in what a move costs. With ``linf`` all features move at the price of one, so
# the adversary moves along both; with ``l1`` each feature is paid for separately, and it moves
# along the one that counts most. In the upper row labels may be flipped at the price ``kappa``, in
# the lower row they may not.


def draw(ax, norm, kappa):
    """Rows, the atoms of the worst distribution that differ from them, and the way there."""
    ball = {"epsilon": EPSILON, "kappa": kappa, "norm": norm, "support": "unit-box"}
    worst = worst_case_distribution(w, X, y, intercept=b, **ball)
    start = X[worst.source_index]
    flipped = worst.labels != y[worst.source_index]
    moved = np.linalg.norm(worst.points - start, axis=1) > 1e-9
    for sign, colour in COLOURS.items():
        ax.scatter(*X[y == sign].T, s=16, color=colour, alpha=0.35)
        mine = (worst.labels == sign) & (moved | flipped)
        size, ring = 3000.0 * worst.weights[mine], {"facecolors": "none", "linewidths": 1.5}
        ax.scatter(*worst.points[mine].T, s=size, edgecolors=colour, **ring)
    for a, c, mass in zip(start[moved], worst.points[moved], worst.weights[moved], strict=True):
        arrow = {"arrowstyle": "->", "color": "0.3", "alpha": min(1.0, 0.1 + mass * len(X))}
        ax.annotate("", c, a, arrowprops=arrow)
    edge = np.array([-0.02, 1.02])
    for level, style in ((0.0, "solid"), (1.0, "dotted"), (-1.0, "dotted")):
        ax.plot(edge, (level - b - w[0] * edge) / w[1], color="0.2", linestyle=style, lw=0.9)
    ax.set(xlim=edge, ylim=edge, title=f"{norm}, kappa = {kappa:g}", aspect="equal")
    print(
        f"{norm:<5} kappa {kappa:<4g} risk {worst.risk:.3f}, mean cost {worst.transport_cost:.3f}; "
        f"of the mass {worst.weights[moved].sum():.3f} moved, "
        f"{worst.weights[flipped].sum():.3f} flipped"
    )
    value = worst_case_risk(w, X, y, intercept=b, **ball).value
    assert abs(worst.risk - value) < 1e-9  # attained, not only bounded


figure, axes = plt.subplots(
    2, 3, figsize=(9.0, 6.4), sharex=True, sharey=True, layout="constrained"
)
for row, kappa in zip(axes, (KAPPA, np.inf), strict=True):
    for ax, norm in zip(row, ("l1", "l2", "linf"), strict=True):
        draw(ax, norm, kappa)
figure.supxlabel("feature 1")
figure.supylabel("feature 2")
plt.show()

# %%
# Dots are the rows. Rings are the atoms of the worst distribution that differ from them, sized by
# their mass and coloured by their label; the solid line is the model, the dotted lines its
# margins. Rows that move go all the way to the wall: the loss grows with the distance until the box
# ends it. Where many rows are equally good targets, a little of each is moved, and arrows are as
# dark as their mass. Rows far on their own side are flipped: there a wrong label hurts most.
