"""
Reading a model that bends
==========================

A seal leaks when its pressure is too low or too high, and a tool breaks when torque and speed are
high together. A straight line cannot say that; curves and a surface can, and they can be read.
"""

# %%
# Three plants, three sensors. Faults are rows whose pressure is far from 5 bar, or whose torque and
# speed are high at once.

import matplotlib.pyplot as plt
import numpy as np

from fdrsvm import FDRSVC, AdditiveMap, feature_effects, flipping_perturbation
from fdrsvm.inspection import CurvesDisplay

rng = np.random.default_rng(0)
low, high = np.array([0.0, 10.0, 500.0]), np.array([10.0, 70.0, 3000.0])
rows = low + (high - low) * rng.random((900, 3))
is_fault = (np.abs(rows[:, 0] - 5.0) > 3.5) | ((rows[:, 1] > 45.0) & (rows[:, 2] > 2000.0))
X, y = (rows - low) / (high - low), np.where(is_fault, "fault", "ok")
plants = np.repeat(["north", "east", "south"], 300)

bent = AdditiveMap(pairs=[(1, 2)], pair_knots=3)
model = FDRSVC(features=bent, epsilon=0.001, kappa=1.0).fit(X, y, clients=plants)
straight = FDRSVC(epsilon=0.001, kappa=1.0).fit(X, y, clients=plants)
print(f"right of the rows: {model.score(X, y):.3f} with curves, {straight.score(X, y):.3f} without")

# %%
# What each sensor adds to the score at each reading, as a share of its range, and what torque
# (x1) and speed (x2) add together. Scores above 0 mean the class "ok": it is lost at both ends of
# the pressure (x0), and where torque and speed are high.

CurvesDisplay.from_estimator(model, name="towards 'ok'")
plt.show()

# %%
# One row: what its sensors add, and how little would turn the decision. The move is tried; below
# the bound it is proved that none turns it.

row = X[:1]
for effect in feature_effects(model, row).top(3)[0]:
    print(f"{effect.feature} at {effect.value:.2f} adds {effect.effect:+.2f}")
turn = flipping_perturbation(model, row)
print(
    f"{turn.labels[0]} turns to {turn.flipped_labels[0]} if sensors move by {turn.cost[0]:.3f} of "
    f"their ranges, and not before {turn.lower_bound[0]:.3f}"
)
