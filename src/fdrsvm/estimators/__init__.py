"""Estimators: scikit-learn classes, the linear model they train, its file and its exports."""
