"""The package's own errors. Each message names what was wrong, where, and which rule it broke."""

from __future__ import annotations


class FDRSVMError(Exception):
    """Base of all errors raised on purpose by this package."""


class InvalidInputError(FDRSVMError, ValueError):
    """An argument breaks a rule.

    Attributes
    ----------
    argument : str
        Name of the argument.
    rule : str
        What must hold.
    """

    def __init__(self, argument: str, rule: str, found: str) -> None:
        self.argument = argument
        self.rule = rule
        self.found = found
        super().__init__(argument, rule, found)

    def __str__(self) -> str:
        return f"{self.argument}: {self.rule}; {self.found}"


class UnsupportedError(FDRSVMError, NotImplementedError):
    """The options are valid one by one but do not go together."""


class NumericalError(FDRSVMError, ArithmeticError):
    """The input is legal but float64 is not enough for it; the numbers cannot be trusted."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before its certified gap reached the tolerance."""
