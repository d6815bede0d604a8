"""The paper's experiments, repeated: studies give rows, and all else comes from the rows."""
