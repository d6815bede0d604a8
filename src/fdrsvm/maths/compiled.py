"""One spelling of numba's decorator, typed, so that every kernel is compiled the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile at the first call, keep the machine code on disk, run without the global lock."""
    return cast(_Function, njit(cache=True, nogil=True)(function))
