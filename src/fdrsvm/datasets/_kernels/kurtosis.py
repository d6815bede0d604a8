"""Spectral kurtosis of records cut into overlapping segments.

A segment's spectrum is taken about its middle, where the sum of each pair of samples at equal
distance carries the cosine and their difference the sine. That is half the work of the transform,
and quicker than an FFT where the length has a large prime factor (1208 = 8 x 151 for the pump).
"""

from __future__ import annotations

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled

PAIRS = 4  # taken together; tables have a multiple of it as rows
_BLOCK = 192  # frequencies at a time: their part of the tables stays in the cache


@compiled
def _fill_pairs(record: Array, start: int, size: int, sums: Array, differences: Array) -> None:
    for j in range((size + 1) // 2):
        early, late = record[start + j], record[start + size - 1 - j]
        alone = 2 * j == size - 1
        sums[j] = early if alone else late + early
        differences[j] = 0.0 if alone else late - early


@compiled
def _fill_block(pairs: Array, table: Array, first: int, width: int, out: Array) -> None:
    """Products of the pairs with columns ``first`` to ``first + width`` of the table."""
    end = first + width
    out[:width] = 0.0
    for j in range(0, table.shape[0], PAIRS):
        a, b, c, d = pairs[j], pairs[j + 1], pairs[j + 2], pairs[j + 3]
        # Slices, since an index that might be negative keeps the loop from being vectorised.
        ta, tb = table[j, first:end], table[j + 1, first:end]
        tc, td = table[j + 2, first:end], table[j + 3, first:end]
        for f in range(width):
            out[f] += (a * ta[f] + b * tb[f]) + (c * tc[f] + d * td[f])


@compiled
def _record_kurtosis(
    sums: Array, differences: Array, cosines: Array, sines: Array, kurtosis: Array
) -> None:
    n_segments, n_frequencies = sums.shape[0], cosines.shape[1]
    real, imaginary = np.empty(_BLOCK), np.empty(_BLOCK)
    second, fourth = np.empty(_BLOCK), np.empty(_BLOCK)
    for first in range(0, n_frequencies, _BLOCK):
        width = min(_BLOCK, n_frequencies - first)
        second[:], fourth[:] = 0.0, 0.0
        for segment in range(n_segments):
            _fill_block(sums[segment], cosines, first, width, real)
            _fill_block(differences[segment], sines, first, width, imaginary)
            for f in range(width):
                power = real[f] * real[f] + imaginary[f] * imaginary[f]
                second[f] += power
                fourth[f] += power * power
        for f in range(width):
            square = second[f] * second[f]
            # A silent frequency has no kurtosis and is never the largest.
            kurtosis[first + f] = n_segments * fourth[f] / square - 2.0 if square > 0.0 else -2.0


@compiled
def fill_kurtosis(
    records: Array, size: int, hop: int, cosines: Array, sines: Array, kurtosis: Array
) -> None:
    """``mean |S|^4 / (mean |S|^2)^2 - 2`` over the segments, for each record and frequency.

    Tables hold the window times cosine and sine, a row for each distance from the middle.
    """
    n_segments = (records.shape[1] - size) // hop + 1
    sums = np.zeros((n_segments, cosines.shape[0]))
    differences = np.zeros((n_segments, cosines.shape[0]))
    for n in range(records.shape[0]):
        for segment in range(n_segments):
            _fill_pairs(records[n], segment * hop, size, sums[segment], differences[segment])
        _record_kurtosis(sums, differences, cosines, sines, kurtosis[n])
