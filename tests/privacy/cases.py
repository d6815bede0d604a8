"""Federations to attack, and letters to open."""

import numpy as np

from fdrsvm.datasets import load_uci, partition
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.secure.primitives import is_whole, proof_of, read_letter


def breast_cancer(n_clients, seed=0):
    """70 % of the rows, min-max scaled, dealt to clients with classes in proportion."""
    data = load_uci("bcw")
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
    rows = np.random.default_rng(seed).permutation(y.size)[: int(0.7 * y.size)]
    X, y = X[rows], y[rows]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    ids = partition.stratified(y, n_clients, random_state=seed)
    return {f"client {g}": (X[ids == g], y[ids == g]) for g in range(n_clients)}


def opened(key, letter):
    """What was sealed in a letter, for a reader who first looks whether it is whole."""
    if not is_whole(proof_of(key), letter):
        raise CorruptDataError("share: it was not sealed for this client and round")
    return read_letter(key, letter)
