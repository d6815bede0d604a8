"""
Several classes, and plants that know two each
==============================================

Which leak is it? There are five answers: healthy, and four sizes of leak. No plant has seen more
than two of them. Together they train one model that distinguishes all five, one-vs-rest, with all
classes in the same rounds and one certificate per class.
"""

import matplotlib.pyplot as plt
import numpy as np

from fdrsvm import FDRSVC
from fdrsvm.datasets import make_pump

pump = make_pump("nominal", random_state=0)
sizes = sorted(pump.client_severities)
NAMES = ("0 healthy", "1 small", "2 medium", "3 large", "4 huge")


def classes_of(severity):
    """The name of each row's class."""
    return np.array(NAMES)[np.searchsorted([0.0, *sizes], severity)]


y, y_test = classes_of(pump.severity), classes_of(pump.severity_test)
for g in range(4):
    print(f"plant {g + 1} has seen: {', '.join(np.unique(y[pump.clients == g]))}")

model = FDRSVC(epsilon=0.001, kappa=1.0, norm="l2", client_weights="equal")
model.fit(pump.X_normalised, y, clients=pump.clients)
for name, risk, gap in zip(model.classes_, model.objective_, model.gap_, strict=True):
    print(f"{name:<10} worst-case risk {risk:.3f}, certified gap {gap:.0e}")

# %%
# The confusion matrix, in shares of the true class.

predicted = model.predict(pump.X_test_normalised)
counts = np.array(
    [[np.count_nonzero((y_test == a) & (predicted == b)) for b in NAMES] for a in NAMES]
)
shares = counts / counts.sum(axis=1, keepdims=True)
print(
    f"accuracy {np.mean(predicted == y_test):.3f}; guessing the largest class gives "
    f"{counts.sum(axis=1).max() / counts.sum():.3f}"
)

ax = plt.figure(figsize=(6.4, 4.6), layout="constrained").add_subplot()
ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
ax.set_xticks(range(5), NAMES, rotation=30)
ax.set_yticks(range(5), NAMES)
ax.set_xlabel("predicted")
ax.set_ylabel("true")
for (row, column), share in np.ndenumerate(shares):
    shade = "white" if share > 0.6 else "black"
    ax.text(column, row, f"{share:.2f}", ha="center", va="center", color=shade)
plt.show()

# %%
# A size between two others is hard for a linear one-vs-rest model: no single cut separates it from
# both neighbours. The ends of the scale are easy.

easiest, hardest = (NAMES[pick(shares.diagonal())] for pick in (np.argmax, np.argmin))
print(f"best told apart: {easiest}; worst: {hardest}")
