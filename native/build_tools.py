"""What a build needs: a compiler, or the one in the package ``ziglang`` where there is none.

``python native/build_tools.py`` prints all that an editable install needs here, one requirement
per line; it needs nothing itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

ZIG = "ziglang>=0.13,<1"
PAIRS = (("cc", "c++"), ("gcc", "g++"), ("clang", "clang++"))


def zig_if_needed() -> list[str]:
    """The requirement on Zig, where no other compiler was chosen or found."""
    return [] if is_windows() or is_chosen() or found_compilers() else [ZIG]


def is_windows() -> bool:
    """Where CMake finds Visual Studio by itself."""
    return sys.platform == "win32"


def is_chosen() -> bool:
    """Whether the user says which compiler to take."""
    return "CXX" in os.environ


def found_compilers() -> tuple[str, str] | None:
    """The C and the C++ compiler that Python itself was built with, or others that work."""
    of_python = tuple(str(sysconfig.get_config_var(name)).split()[0] for name in ("CC", "CXX"))
    for c, cxx in (of_python, *PAIRS):
        if _works(c) and _works(cxx):
            return c, cxx
    return None


def _works(compiler: str) -> bool:
    """Whether it can be run: macOS has a ``cc`` that only says what to install."""
    if shutil.which(compiler) is None:
        return False
    return subprocess.run([compiler, "--version"], capture_output=True).returncode == 0


def main() -> None:
    """Print what an editable install needs here."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    programs = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
    print("\n".join([*project["build-system"]["requires"], *programs, *zig_if_needed()]))


if __name__ == "__main__":
    main()
