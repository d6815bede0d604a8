"""Compiled inner loops of the worst case: arrays in, arrays out, nothing checked.

flips    which labels an adversary flips first (docs/maths.md [flips]): a weighted quickselect, O(N)
moves    how far a block of samples is moved inside a box at a given multiplier [moves]
search   the multiplier at which the transport budget is spent [box-dual]
worst    the worst distribution itself, mixed from the search's two ends [mixture]
"""
