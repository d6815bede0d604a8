"""Two spellings of numba's decorator, typed: every kernel is compiled in one of two ways.

Machine code is kept in the first of these folders that can be written to: NUMBA_CACHE_DIR, beside
the sources, the user's cache folder, a folder of the user's own among temporary files. numba runs
what it finds there, so a folder in which others could put something is not taken.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

from fdrsvm.texts import package_log

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SETTINGS: Any = config  # numba makes its names at run time


def compiled(function: _Function) -> _Function:
    """Compile at the first call, keep the machine code on disk, run without the global lock."""
    return _compile(function)


def compiled_fast(function: _Function) -> _Function:
    """The same, and products may be fused with sums.

    For solvers, which are graded by other code; never for certificates or risks. Infinities and
    nans keep their meaning, and a division by zero gives one of them, as in NumPy. Sums are not
    reordered: which order is taken may depend on where an array lies in memory, and a resumed run
    would not repeat its bits.
    """
    return _compile(function, error_model="numpy", fastmath={"contract", "nsz", "arcp"})


def _compile(function: _Function, **options: Any) -> _Function:
    if _SETTINGS.DISABLE_JIT:  # numba would hand the plain function back, which keeps nothing
        return function
    decorate = njit(nogil=True, **options)
    kernel = decorate(function)
    if not _is_kept(kernel):
        kernel = decorate(function)  # again, without the folder that others can write to
        folder = _folder_among_temporary_files()
        if folder is not None:
            given, _SETTINGS.CACHE_DIR = _SETTINGS.CACHE_DIR, str(folder)
            kernel.enable_caching()
            _SETTINGS.CACHE_DIR = given
    return cast(_Function, kernel)


def _is_kept(kernel: Any) -> bool:
    """Whether numba found a folder for the machine code, and one that only this user can fill."""
    try:
        kernel.enable_caching()
    except RuntimeError:  # it found none that it may write to
        return False
    folder, source = Path(kernel.stats.cache_path), Path(kernel.py_func.__code__.co_filename)
    is_beside_source = folder.parent == source.parent  # who can write there owns the program
    return bool(_SETTINGS.CACHE_DIR) or is_beside_source or _is_for_us_alone(folder)


def _is_for_us_alone(folder: Path) -> bool:
    """Whether only this user or root can put something in it, or rename it or a folder above."""
    if os.name != "posix":
        return True
    leaf, *above = (os.stat(each) for each in (folder.resolve(), *folder.resolve().parents))
    is_open = _may_others_write(leaf) or any(
        _may_others_write(each) and not each.st_mode & stat.S_ISVTX for each in above
    )  # where the sticky bit is set, others can add names but neither rename nor remove ours
    return not is_open and all(each.st_uid in (0, os.geteuid()) for each in (leaf, *above))


def _may_others_write(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@cache
def _folder_among_temporary_files() -> Path | None:
    """Made for this user alone, or None if somebody else made it; says so once."""
    remedy = "NUMBA_CACHE_DIR names another folder"
    if os.name == "posix":
        folder = Path(tempfile.gettempdir()) / f"fdrsvm-{os.geteuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            status = os.lstat(folder)
            is_mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_mine and not status.st_mode & 0o077 and _is_for_us_alone(folder):
                package_log().warning("fdrsvm: machine code is kept in %s; %s", folder, remedy)
                return folder
        except OSError:
            pass
    package_log().warning("fdrsvm: no folder for machine code, so every start compiles; %s", remedy)
    return None
