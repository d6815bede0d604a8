"""Solvers of one client's problem, each answer with its own certified duality gap."""

from fdrsvm.errors import ConvergenceWarning
from fdrsvm.solvers.client_prox import (
    PreparedClient,
    prepare_client,
    solve_central,
    solve_client_prox,
)
from fdrsvm.solvers.solution import Solution, Status, WarmStart

__all__ = [
    "ConvergenceWarning",
    "PreparedClient",
    "Solution",
    "Status",
    "WarmStart",
    "prepare_client",
    "solve_central",
    "solve_client_prox",
]
