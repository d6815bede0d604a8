"""
Wrong labels: robust against plain
==================================

Operators label by ear and work orders are closed late, so labels are wrong. How much does that
cost a plain SVM, and how much a robust one? We use the breast cancer data, distributed to four
clients, with more and more training labels flipped; the test labels stay clean.
"""

# %%
# Three models see the same wrong labels: one without any protection, one with a ball that trusts
# the labels (``kappa = inf``), and one with a ball in which a label may be flipped at a price. All
# are trained by the same certified method.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from fdrsvm import FDRSVC
from fdrsvm.datasets import corrupt, load_uci, partition

SHARES = (0.0, 0.1, 0.2, 0.3)
SEEDS = range(3)
MODELS = {
    "plain": FDRSVC(epsilon=0.0, kappa=np.inf, norm="l2"),
    "robust, labels trusted": FDRSVC(epsilon=0.05, kappa=np.inf, norm="l2"),
    "robust, labels doubted": FDRSVC(epsilon=0.05, kappa=0.5, norm="l2"),
}

cancer = load_uci("bcw", download=False)


def accuracies(share, seed):
    """Test accuracy of each model when this share of every client's labels is wrong."""
    X, X_test, y, y_test = train_test_split(
        cancer.X, cancer.y, test_size=0.3, stratify=cancer.y, random_state=seed
    )
    low, high = X.min(axis=0), X.max(axis=0)
    X, X_test = (X - low) / (high - low), (X_test - low) / (high - low)
    clients = partition.stratified(y, 4, random_state=seed)
    wrong = corrupt.flip_labels(y, share, clients=clients, random_state=seed)
    return [m.fit(X, wrong, clients=clients).score(X_test, y_test) for m in MODELS.values()]


scores = np.array([[accuracies(share, seed) for seed in SEEDS] for share in SHARES])

# %%
# Mean over the seeds, and the spread of single runs. The printed sentences are computed from the
# results, whatever these are.

mean = scores.mean(axis=1)
for share, row in zip(SHARES, mean, strict=True):
    named = ", ".join(f"{name} {value:.3f}" for name, value in zip(MODELS, row, strict=True))
    print(f"{share:.0%} wrong: {named}")

lost = mean[0] - mean[-1]
for name, value in zip(MODELS, lost, strict=True):
    print(f"{SHARES[-1]:.0%} of wrong labels cost '{name}' {100 * value:.1f} points")

ax = plt.figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
for k, (name, style) in enumerate(zip(MODELS, ("--", "-.", "-"), strict=True)):
    ax.plot(SHARES, mean[:, k], style, marker="o", label=name)
    ax.fill_between(SHARES, scores[:, :, k].min(axis=1), scores[:, :, k].max(axis=1), alpha=0.12)
ax.set_xlabel("share of wrong training labels")
ax.set_ylabel("accuracy on clean test rows")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# The robust model does not know which labels are wrong, and does not need to. Its loss stays small
# no matter which few labels were flipped, so no single row can pull the boundary far.
