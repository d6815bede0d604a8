"""Numbers that masks can hide: whole numbers modulo 2^128, of which 64 bits are the fraction.

A number x is stored as round(2^64 x) modulo 2^128, in two words, the lower one first. Sums of such
numbers are exact, whatever their order, and wrap round like the masks that are added to them. With
64 bits before the point and 64 after it nobody has to agree on a scale: the step is 5.4e-20, and
float64 itself is coarser from 2.5e-4 on.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array

Fixed: TypeAlias = npt.NDArray[np.uint64]  # the last axis is (low word, high word)

# Weighted sums of numbers up to this stay far from half of 2^64, where signs would be lost.
LARGEST = 2.0**60
_FRACTION = 2.0**64


def to_fixed(values: Array) -> Fixed:
    """Two words a number; all must lie within +-LARGEST."""
    sizes = np.abs(values)
    whole = np.floor(sizes)
    low = np.rint((sizes - whole) * _FRACTION)
    fixed = np.stack([low.astype(np.uint64), whole.astype(np.uint64)], axis=-1)
    return np.where((values < 0.0)[..., None], negative(fixed), fixed)


def from_fixed(fixed: Fixed) -> Array:
    """The numbers, to within a rounding or two."""
    is_negative = fixed[..., 1] >> np.uint64(63) == 1
    sizes = np.where(is_negative[..., None], negative(fixed), fixed).astype(np.float64)
    values = sizes[..., 1] + sizes[..., 0] / _FRACTION
    return np.where(is_negative, -values, values)


def added(left: Fixed, right: Fixed) -> Fixed:
    """The sum modulo 2^128."""
    low = left[..., 0] + right[..., 0]
    carry = (low < left[..., 0]).astype(np.uint64)
    return np.stack([low, left[..., 1] + right[..., 1] + carry], axis=-1)


def negative(fixed: Fixed) -> Fixed:
    """What added to it gives 0."""
    low = ~fixed[..., 0] + np.uint64(1)
    carry = (low == 0).astype(np.uint64)
    return np.stack([low, ~fixed[..., 1] + carry], axis=-1)
