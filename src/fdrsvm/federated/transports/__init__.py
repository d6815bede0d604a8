"""Ways to carry messages."""
