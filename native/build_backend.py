"""Builds the package with scikit-build-core, and with Zig's compiler where the machine has none.

Without a C++ compiler the package ``ziglang``, which brings Clang, is asked for as one more thing
that the build needs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from build_tools import found_compilers, is_chosen, is_windows, zig_if_needed
from scikit_build_core import build as _build
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, str | list[str]] | None

# Zig compiles for the processor at hand unless told otherwise, and compiles its C++ library once
# for each kind of optimisation: CMake's first trials have none.
PLAIN = "-mcpu=baseline -O2"
NO_COMPILER = (
    "fdr-svm: no C++ compiler was found (cc, gcc or clang, or what CC and CXX name), and the "
    "package ziglang, which brings one, is not installed; install either and try again"
)
FAILED = (
    "fdr-svm: its C++ part could not be compiled; the compiler's own words are above. GCC 11, "
    "Clang 14 or newer is needed, and a 64-bit Python"
)
FOREIGN = "fdr-svm: a 64-bit Python on a 64-bit processor is needed; this one has 32 bits"


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a wheel needs, a compiler included."""
    return [*_build.get_requires_for_build_wheel(config_settings), *zig_if_needed()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """What an editable install needs, a compiler included."""
    return [*_build.get_requires_for_build_editable(config_settings), *zig_if_needed()]


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """A wheel, compiled here."""
    with _compiler():
        return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """The same for an editable install, which keeps its objects in ``build``."""
    with _compiler():
        return _build.build_editable(wheel_directory, config_settings, metadata_directory)


@contextmanager
def _compiler() -> Iterator[None]:
    """Has CMake use the right compiler, and says in one sentence why there is no package."""
    if sys.maxsize < 2**32:
        raise SystemExit(FOREIGN)
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        _set_compiler(Path(scratch))
        try:
            yield
        except SystemExit:
            raise SystemExit(FAILED) from None
        finally:
            os.environ.clear()
            os.environ.update(before)


def _set_compiler(scratch: Path) -> None:
    if is_windows():
        # Microsoft's compiler has no vector types; without Clang CMake finds Visual Studio.
        if not is_chosen() and shutil.which("clang-cl"):
            os.environ.update(CC="clang-cl", CXX="clang-cl", CMAKE_GENERATOR="Ninja")
    elif not is_chosen():
        found = found_compilers()
        if found is not None:
            os.environ["CC"], os.environ["CXX"] = found
        elif find_spec("ziglang") is not None:
            _set_zig(scratch)
        else:
            raise SystemExit(NO_COMPILER)


def _set_zig(scratch: Path) -> None:
    """Programs of one word, as CMake wants them, each a tool of Zig's."""
    import ziglang

    folder = _kept_folder(scratch)
    zig = Path(ziglang.__file__).with_name("zig")
    for name, options in {"cc": PLAIN, "c++": PLAIN, "ar": "", "ranlib": ""}.items():
        program = folder / f"zig-{name}"
        program.write_text(f"#!/bin/sh\nexec '{zig}' {name} {options} \"$@\"\n", encoding="utf-8")
        program.chmod(0o755)
    os.environ.update(CC=str(folder / "zig-cc"), CXX=str(folder / "zig-c++"))
    archivers = f"-DCMAKE_AR={folder}/zig-ar -DCMAKE_RANLIB={folder}/zig-ranlib"
    os.environ["CMAKE_ARGS"] = f"{os.environ.get('CMAKE_ARGS', '')} {archivers}".strip()
    os.environ.setdefault("ZIG_LOCAL_CACHE_DIR", str(folder / "cache"))
    if not os.access(os.path.expanduser("~"), os.W_OK):  # where Zig keeps its C++ library
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(folder / "cache"))


def _kept_folder(scratch: Path) -> Path:
    """Beside the objects of earlier builds, for which the compiler must not move."""
    folder = Path("build", "zig").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return scratch
    return folder
