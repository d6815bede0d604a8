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


class ClientError(FDRSVMError, RuntimeError):
    """A client's answer broke a rule, or the client reported an error; nothing was aggregated.

    Attributes
    ----------
    client_id : str
        Which client.
    round : int
        In which round.
    """

    def __init__(self, client_id: str, round_: int, reason: str) -> None:
        self.client_id = client_id
        self.round = round_
        self.reason = reason
        super().__init__(client_id, round_, reason)

    def __str__(self) -> str:
        return f"client {self.client_id!r}, round {self.round}: {self.reason}"


class QuorumError(FDRSVMError, RuntimeError):
    """Too few clients gave a valid answer in a round."""

    def __init__(self, round_: int, n_answers: int, quorum: int, faults: tuple[str, ...]) -> None:
        self.round = round_
        self.n_answers = n_answers
        self.quorum = quorum
        self.faults = faults
        super().__init__(round_, n_answers, quorum, faults)

    def __str__(self) -> str:
        shown = "; ".join(self.faults[:10])
        more = f"; and {len(self.faults) - 10} more" if len(self.faults) > 10 else ""
        return (
            f"round {self.round}: {self.n_answers} valid answers, {self.quorum} are needed ({shown}"
            f"{more})"
        )


class CorruptDataError(FDRSVMError, ValueError):
    """Bytes that were cut or altered, or are of another kind or version; nothing was read."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before its certified gap reached the tolerance."""


class CalibrationWarning(UserWarning):
    """Probabilities that rest on less than was asked for; the message says on what, and why."""


class LeftOutWarning(UserWarning):
    """A run went on without a client: its certificate is that of the others."""


class MixedInFaultsWarning(UserWarning):
    """Some rows that were given as healthy do not look it: alarms set on them may find little."""


class DegenerateModelWarning(UserWarning):
    """A model (almost) never predicts a class that occurs, ignores features, or has odd ones.

    Features are odd if they are not on one scale, or if one of them only tells rows apart.

    Attributes
    ----------
    found : str
        Which class, and how often; or how little the scores vary.
    remedy : str
        What to do about it, in Python.
    command_line_remedy : str
        The same for ``fdrsvm fit``.
    has_given_up : bool
        Whether the model misses a class or ignores all features.
    """

    def __init__(
        self,
        found: str,
        remedy: str = "",
        command_line_remedy: str = "",
        *,
        has_given_up: bool = True,
    ) -> None:
        self.found = found
        self.remedy = remedy
        self.command_line_remedy = command_line_remedy
        self.has_given_up = has_given_up
        super().__init__(found, remedy, command_line_remedy)

    def __str__(self) -> str:
        return f"{self.found}; {self.remedy}" if self.remedy else self.found

    @property
    def for_command_line(self) -> str:
        """What was found, and what to type about it."""
        return f"{self.found}; {self.command_line_remedy}"
