"""Benchmarks side by side, and the studies behind single sentences of the documentation."""
