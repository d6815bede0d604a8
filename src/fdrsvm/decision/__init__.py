"""Where to cut the score that training proves: goals, thresholds, alarms, probabilities."""
