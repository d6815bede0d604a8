"""Where machine code is kept: never where somebody else could have put it, and never nowhere."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fdrsvm
from fdrsvm.maths.compiled import _is_for_us_alone

NOBODY, SOMEBODY = 65534, 65533
PROGRAM = """
import fdrsvm
import numpy as np
from fdrsvm.maths.norms import dual_norm
print(fdrsvm.__file__)
print(dual_norm(np.array([3.0, 4.0]), "l2"))
"""
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
TRY = [sys.executable, "-c", "import numba, numpy"]


def run(command, **variables):
    kept = {"PATH": os.environ["PATH"], **variables}  # no HOME, no NUMBA_CACHE_DIR
    return subprocess.run(
        [*AS_NOBODY, *command],
        env=kept,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


@pytest.fixture
def place():
    """A read-only copy of the package and a folder for temporary files, for another user."""
    if shutil.which(AS_NOBODY[0]) is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv, to become a user without a home")
    if run(TRY, TMPDIR=tempfile.gettempdir()).returncode != 0:
        pytest.skip("another user may not run this interpreter")
    folder = Path(tempfile.mkdtemp(prefix="fdrsvm-test-"))  # pytest's own are closed to others
    try:
        folder.chmod(0o755)
        source = Path(fdrsvm.__file__).parent
        shutil.copytree(source, folder / "fdrsvm", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        yield folder
    finally:
        shutil.rmtree(folder)


def start(place, **variables):
    return run(
        [sys.executable, "-c", PROGRAM],
        PYTHONPATH=str(place),
        PYTHONDONTWRITEBYTECODE="1",
        TMPDIR=str(place / "tmp"),
        **variables,
    )


def machine_code(folder):
    return sorted(path for path in folder.rglob("*.nb[ic]"))


def checked(done, place):
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(place / "fdrsvm" / "__init__.py"), "5.0"]
    return done.stderr.splitlines()


@pytest.mark.parametrize("home", [None, pytest.param("/nonexistent", marks=pytest.mark.slow)])
def test_a_user_without_a_home_has_a_folder_of_its_own(place, home):
    given = {} if home is None else {"HOME": home}
    (line,) = checked(start(place, **given), place)
    folder = place / "tmp" / f"fdrsvm-{NOBODY}"
    assert line == (
        f"fdrsvm: machine code is kept in {folder}; NUMBA_CACHE_DIR names another folder"
    )
    status = folder.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (NOBODY, 0o700)
    kept = machine_code(folder)
    assert kept
    written = [path.stat().st_mtime_ns for path in kept]
    assert checked(start(place, **given), place) == [line]
    assert machine_code(folder) == kept
    assert [path.stat().st_mtime_ns for path in kept] == written  # taken from there, not made again
    assert not machine_code(place / "fdrsvm")


TRAPS = ("a link", "open to all", "a place to rename in")


@pytest.mark.parametrize(
    "trap", ["another's folder", *(pytest.param(trap, marks=pytest.mark.slow) for trap in TRAPS)]
)
def test_a_folder_that_others_can_fill_is_not_taken(place, trap):
    mine, other = place / "tmp" / f"fdrsvm-{NOBODY}", place / "tmp" / "other"
    if trap == "a place to rename in":
        (place / "tmp").chmod(0o777)  # anybody could rename what is in it
    else:
        target = mine if trap != "a link" else other
        target.mkdir()
        target.chmod(0o777)
        if trap == "a link":
            mine.symlink_to(other)
        owner = SOMEBODY if trap == "another's folder" else NOBODY
        os.chown(target, owner, owner)
    (line,) = checked(start(place), place)
    assert "no folder for machine code, so every start compiles; NUMBA_CACHE_DIR" in line
    assert not machine_code(place)


@pytest.mark.slow
def test_a_cache_of_the_user_that_another_made_is_not_taken(place):
    """HOME among temporary files: whoever was there first would choose what is run."""
    cache = place / "tmp" / ".cache"
    cache.mkdir()
    cache.chmod(0o777)
    os.chown(cache, SOMEBODY, SOMEBODY)
    (line,) = checked(start(place, HOME=str(place / "tmp")), place)
    assert f"machine code is kept in {place / 'tmp'}/fdrsvm-{NOBODY}" in line
    assert not machine_code(cache)


@pytest.mark.slow
def test_the_users_own_cache_and_a_folder_asked_for_are_taken_in_silence(place):
    home = place / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    assert checked(start(place, HOME=str(home)), place) == []
    assert machine_code(home)
    asked = place / "tmp" / "asked"
    assert checked(start(place, NUMBA_CACHE_DIR=str(asked)), place) == []
    assert machine_code(asked)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize(
    ("above", "leaf", "is_ours"),
    [
        (0o755, 0o700, True),
        (0o755, 0o755, True),
        (0o1777, 0o700, True),
        (0o1775, 0o755, True),
        (0o755, 0o770, False),
        (0o755, 0o707, False),
        (0o755, 0o1777, False),
        (0o755, 0o1770, False),
        (0o775, 0o700, False),
        (0o757, 0o700, False),
    ],
)
def test_neither_a_group_nor_all_may_write_where_machine_code_is_kept(
    tmp_path, above, leaf, is_ours
):
    """A sticky bit guards the names of a folder's own, so it is enough above and not at the end."""
    assert _is_for_us_alone(tmp_path)
    folder = tmp_path / "above" / "leaf"
    folder.mkdir(parents=True)
    folder.chmod(leaf)
    folder.parent.chmod(above)
    assert _is_for_us_alone(folder) is is_ours


def test_importing_the_package_alone_says_nothing_and_loads_no_numba(place):
    done = run(
        [sys.executable, "-W", "error", "-c", "import fdrsvm, sys; print('numba' in sys.modules)"],
        PYTHONPATH=str(place),
        TMPDIR=str(place / "tmp"),
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
