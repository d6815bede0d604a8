"""Pure mathematics: norms, losses and checked arrays. No random numbers, no files, no state."""
