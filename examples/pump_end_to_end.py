"""
A leaking pump, end to end
==========================

Four plants run the same pump. Each has seen one size of leak, and some of their labels are wrong.
They want one leak detector without pooling their rows. This page goes from raw features to a model
on a PLC.
"""

# %%
# Agree on the data
# -----------------
# Before training, the plants agree on columns, units and limits. The limits are engineering limits,
# so they reveal nothing about any plant's rows. A row that breaks the contract is found at the
# plant itself.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdrsvm import (
    FDRSVC,
    Feature,
    FeatureContract,
    FederatedMinMaxScaler,
    feature_effects,
    flipping_perturbation,
)
from fdrsvm.datasets import make_pump
from fdrsvm.inspection import ClientRiskDisplay, ConvergenceDisplay, FeatureWeightDisplay

contract = FeatureContract(
    features=(
        Feature("fPeak", "Hz", low=43.0, high=45.0),
        Feature("pLow", low=0.0, high=40.0),
        Feature("pMid", low=100.0, high=200.0),
        Feature("pHigh", low=10.0, high=35.0),
        Feature("pKurtosis", "Hz", low=0.0, high=500.0),
        Feature("qMean", "l/min", low=34.0, high=36.0),
        Feature("qVar", low=7.0, high=10.0),
        Feature("qSkewness", low=-1.0, high=0.0),
        Feature("qKurtosis", low=2.0, high=3.5),
        Feature("qPeak2Peak", "l/min", low=10.0, high=20.0),
        Feature("qCrest", low=1.1, high=1.25),
        Feature("qRMS", "l/min", low=34.0, high=36.0),
        Feature("qMAD", "l/min", low=2.0, high=3.0),
        Feature("qCSRange", low=41_000.0, high=43_500.0),
    ),
    labels=("healthy", "leak"),
)
pump = make_pump("noisy-labels", random_state=0)
rows = pd.DataFrame(pump.X, columns=pump.feature_names)
labels = np.where(pump.y > 0, "leak", "healthy")
plants = np.array(["north", "south", "east", "west"])[pump.clients]
for plant in np.unique(plants):
    contract.check(rows[plants == plant], labels[plants == plant], client=plant)
    print(f"{plant}: {np.count_nonzero(plants == plant)} rows keep to the contract")

# %%
# Train
# -----
# The limits define the scaler, so no statistics leave a plant. Then the certified bundle method
# runs until no model can be better by more than the stated gap. ``epsilon`` is how far readings
# may be off on average, in units of the scaled features, and ``kappa`` the price of a wrong
# label.

scaler = FederatedMinMaxScaler(limits=contract.box).set_output(transform="pandas").fit(rows)
X, X_test = (
    scaler.transform(rows),
    scaler.transform(pd.DataFrame(pump.X_test, columns=pump.feature_names)),
)
truth = np.where(pump.y_test > 0, "leak", "healthy")

model = FDRSVC(epsilon=0.005, kappa=1.0, norm="l2").fit(X, labels, clients=plants)
print(f"{model.n_iter_} rounds: {model.stop_reason_}")
print(f"worst-case risk {model.objective_:.4f}, no model is below {model.lower_bound_:.4f}")
print(f"accuracy on {len(truth)} clean test rows: {model.score(X_test, truth):.3f}")

# %%
# Objective above, lower bound below: the optimum lies in the shaded range, which closes.

ConvergenceDisplay.from_estimator(model)
plt.show()

# %%
# Who is worst off, and what the model looks at
# ---------------------------------------------

ClientRiskDisplay.from_estimator(model)
worst = max(model.worst_case_risk_per_client_, key=model.worst_case_risk_per_client_.get)
print(f"the plant with the largest worst-case risk is {worst}")
plt.show()

# %%
# The weights refer to scaled features.

FeatureWeightDisplay.from_estimator(model, max_features=8)
plt.show()

# %%
# Explain one alarm
# -----------------
# Which features raised it, and how far all features together would have to move to silence it.

alarm = X_test[(truth == "leak") & (model.predict(X_test) == "leak")][:1]
for effect in feature_effects(model, alarm, baseline=X[labels == "healthy"].mean()).top(3)[0]:
    print(f"{effect.feature:<10} {effect.effect:+.3f} against the mean healthy row")
flip = flipping_perturbation(model, alarm, norm="l2")
print(f"the decision turns at a distance of {flip.cost[0]:.3f}")

# %%
# Put it to work
# --------------
# A model file is checked to the last bit when it is read, and carries its certificate. For a PLC
# there is structured text; its inputs are the scaled features, so the PLC also needs the limits of
# the contract. For everything else there are ``model.to_onnx`` and ``model.to_json``.

program = model.to_structured_text(name="LeakScore").splitlines()
print("\n".join(program[:14]), f"... and {len(program) - 14} more lines", sep="\n")
