"""Compiled runs of the baselines. Arguments are clean; nothing is checked here."""
