"""Mechanics that every other folder uses: checked arrays, norms, losses, safe files, one JSON."""
