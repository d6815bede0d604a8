"""Wasserstein balls and their worst cases. Pure functions of arrays; no solvers, no files."""
