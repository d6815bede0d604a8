"""
Choosing epsilon and kappa
==========================

Two numbers describe what may be wrong with a plant's data: ``epsilon``, how far readings are off
on average, and ``kappa``, how much a wrong label counts in units of distance. If nobody knows
them, cross-validation finds them without any row leaving a plant.
"""

# %%
# Each plant splits its own rows into folds. Models are trained across the plants on all folds but
# one, and every plant counts its right and wrong answers on the fold left out. The server adds up
# the counts.

import matplotlib.pyplot as plt
import numpy as np

from fdrsvm import FDRSVC, FDRSVCCV
from fdrsvm.datasets import make_pump
from fdrsvm.inspection import RobustnessDisplay

EPSILONS, KAPPAS = (0.0001, 0.001, 0.01, 0.1), (0.1, 0.5, 1.0)

pump = make_pump("noisy-labels", random_state=0)
X, y, plants = pump.X_normalised, pump.y, pump.clients

search = FDRSVCCV({"epsilon": EPSILONS, "kappa": KAPPAS}, norm="l2", cv=3, random_state=0)
search.fit(X, y, clients=plants)
print(
    f"best: {search.best_params_}, balanced accuracy {search.best_score_:.3f} in cross-validation"
)
print(f"every plant handed over {search.n_numbers_shared_} counts, and no row")

# %%
# The whole grid. If neighbouring scores differ by less than a point or two, that says nothing
# about which one is better: with a few hundred rows they are that uncertain.

grid = search.cv_results_["pooled_test_score"].reshape(len(EPSILONS), len(KAPPAS))
ax = plt.figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
image = ax.imshow(grid, cmap="viridis", aspect="auto")
ax.set_xticks(range(len(KAPPAS)), [f"{kappa:g}" for kappa in KAPPAS])
ax.set_yticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
ax.set_xlabel("kappa: price of a wrong label")
ax.set_ylabel("epsilon: radius")
for (row, column), value in np.ndenumerate(grid):
    shade = "white" if value < grid.mean() else "black"
    ax.text(column, row, f"{value:.3f}", ha="center", va="center", color=shade)
ax.figure.colorbar(image, label="balanced accuracy in cross-validation")
plt.show()

# %%
# What a radius buys
# ------------------
# A second way to choose is to ask how the model should behave when the data get worse. This is the
# worst-case risk on the test rows as the radius grows, for models trained with three radii. The
# printed ends of the curves show which model is best on the rows as they are, and which one when
# they are bad.

radii = np.linspace(0.0, 0.2, 21)
ax = None
for epsilon in (0.001, 0.01, 0.05):
    model = FDRSVC(epsilon=epsilon, kappa=1.0, norm="l2").fit(X, y, clients=plants)
    display = RobustnessDisplay.from_estimator(
        model,
        pump.X_test_normalised,
        pump.y_test,
        radii=radii,
        name=f"trained with epsilon = {epsilon:g}",
        ax=ax,
    )
    ax = display.ax_
    print(
        f"epsilon {epsilon:<6g} risk on the test rows {display.risk[0]:.3f}, "
        f"in the worst case within 0.2 {display.risk[-1]:.3f}"
    )
plt.show()
