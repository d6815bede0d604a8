"""Federations of real processes: a plant's data and memory, a run's settings and results, keys."""
