"""Not training: clients give risk and cut at one model, so that the last one is certified too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fdrsvm.core.arrays import Array
from fdrsvm.federated.messages import Values
from fdrsvm.federated.problem import ClientProblem, evaluate


@dataclass(frozen=True)
class Evaluation:
    """The client's part of an evaluation; the loop does the server's."""

    name: ClassVar[str] = "evaluation"

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """Risk and cut at each point; nothing is remembered."""
        return memory, evaluate(problem, asked["points"])
