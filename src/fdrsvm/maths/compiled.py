"""Two spellings of numba's decorator, typed: every kernel is compiled in one of two ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile at the first call, keep the machine code on disk, run without the global lock."""
    return cast(_Function, njit(cache=True, nogil=True)(function))


def compiled_fast(function: _Function) -> _Function:
    """The same, and products may be fused with sums.

    For solvers, which are graded by other code; never for certificates or risks. Infinities and
    nans keep their meaning, and a division by zero gives one of them, as in NumPy. Sums are not
    reordered: which order is taken may depend on where an array lies in memory, and a resumed run
    would not repeat its bits.
    """
    reordered = {"contract", "nsz", "arcp"}
    decorate = njit(cache=True, nogil=True, error_model="numpy", fastmath=reordered)
    return cast(_Function, decorate(function))
