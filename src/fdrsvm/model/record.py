"""Names of what ``fit`` keeps in a model's record about its classes."""

from __future__ import annotations

POSITIVE = "positive"  # of two classes: the one that scores of one class are of
VERDICT = "verdict"  # what is wrong with the model, if anything is, and what to type about it
