"""Experiments: data in, tables, figures and reports out. No mathematics of their own."""
