"""Compiles with the sanitizers and runs tests on that: ``sanitized.py FOLDER TEST ...``.

FOLDER holds ``package``, a copy of the sources, and ``venv``, an empty environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import nanobind
from build_tools import found_compilers

# A leak of Python's own at exit is none of ours.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def main(folder: Path, tests: list[str]) -> None:
    """Compile, install beside the copied sources, test."""
    compilers = found_compilers()
    if compilers is None:
        raise SystemExit("native-check: GCC or Clang is needed for the sanitizers")
    compile_into(folder, *compilers)
    # As a plain path, the tests' environment brings all but its own editable package.
    (own,) = folder.glob("venv/lib/python3*/site-packages")
    (own / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    preloaded = [library(compilers[1], name) for name in ("libasan.so", "libstdc++.so.6")]
    environment = os.environ | OPTIONS
    environment |= {"PYTHONPATH": str(folder / "package"), "LD_PRELOAD": " ".join(preloaded)}
    python = folder / "venv" / "bin" / "python"
    origin = [python, "-c", "import fdrsvm.native as n; print(n._core.__file__)"]
    loaded = subprocess.run(origin, env=environment, capture_output=True, text=True, check=True)
    if not Path(loaded.stdout.strip()).is_relative_to(folder):
        raise SystemExit(f"native-check: {loaded.stdout.strip()} is not the sanitized module")
    # The sanitizers write to the standard error itself, which pytest would keep to itself.
    command = [python, "-m", "pytest", "--capture=sys", "-p", "no:cacheprovider", *tests]
    raise SystemExit(subprocess.run(command, env=environment).returncode)


def compile_into(folder: Path, c: str, cxx: str) -> None:
    """The level that is loaded here, with the sanitizers."""
    from fdrsvm.native import LEVEL

    objects = folder / "objects"
    settings = {
        "FDRSVM_SANITIZE": "ON",
        "FDRSVM_LEVELS": LEVEL,
        "CMAKE_C_COMPILER": c,
        "CMAKE_CXX_COMPILER": cxx,
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": nanobind.cmake_dir(),
    }
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    run("cmake", "-S", "native", "-B", objects, "-G", "Ninja", *defined)
    run("cmake", "--build", objects)
    run("cmake", "--install", objects, "--prefix", folder / "package")


def run(*command: str | Path) -> None:
    """Its output only where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout[-5000:] + done.stderr[-5000:])


def library(compiler: str, name: str) -> str:
    """Where the compiler keeps a library."""
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True)
    return found.stdout.strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
