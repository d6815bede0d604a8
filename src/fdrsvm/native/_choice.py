"""Which of the compiled modules to load."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from fdrsvm.errors import FDRSVMError, InvalidInputError

LEVELS = ("avx512", "avx2", "baseline")  # the best first
_AGAIN = "install it again with `pip install --force-reinstall fdr-svm`"


def runnable_levels() -> list[str]:
    """Instruction sets that were compiled and that this processor can run, the best first."""
    runs_here = _load("_processor").levels()
    return [level for level in LEVELS if level in runs_here and _is_compiled(level)]


def choose_level(forced: str | None) -> str:
    """``forced``, or the best available instruction set."""
    levels = runnable_levels()
    if not levels:
        raise FDRSVMError(f"no kernel of fdrsvm was compiled for this processor; {_AGAIN}")
    if not forced:
        return levels[0]
    if forced not in levels:
        rule = f"must be one of {', '.join(levels)} here"
        raise InvalidInputError("FDRSVM_LEVEL", rule, f"it is {forced!r}")
    return forced


def load_core(level: str) -> ModuleType:
    """The kernels that were compiled for a level."""
    return _load(f"_core_{level}")


def _load(name: str) -> ModuleType:
    try:
        return import_module(f"fdrsvm.native.{name}")
    except ImportError as error:
        raise FDRSVMError(
            "the compiled part of fdrsvm is missing, or was made for another Python, processor or "
            f"system; {_AGAIN} ({error})"
        ) from error


def _is_compiled(level: str) -> bool:
    return find_spec(f"fdrsvm.native._core_{level}") is not None
