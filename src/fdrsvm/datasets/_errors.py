"""Errors of data files and of fetching them."""

from __future__ import annotations

from fdrsvm.errors import FDRSVMError


class DataError(FDRSVMError, ValueError):
    """A data file breaks a rule.

    Attributes
    ----------
    file : str
        Path or address of the file.
    rule : str
        What must hold.
    found : str
        What is there instead.
    line : int or None
        Line in the file, counted from 1 as editors do.
    column : str or None
        Name of the column.
    """

    def __init__(
        self,
        file: str,
        rule: str,
        found: str,
        *,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        self.file = file
        self.rule = rule
        self.found = found
        self.line = line
        self.column = column
        super().__init__(file, rule, found)

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        column = "" if self.column is None else f", column {self.column!r}"
        return f"{self.file}{line}{column}: {self.rule}; {self.found}"


class FetchError(FDRSVMError, OSError):
    """A file could not be fetched; the message says what to put where instead."""


class DataWarning(UserWarning):
    """The data were loaded, but not quite as expected."""
