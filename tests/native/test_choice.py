"""Which compiled module is loaded, and one clear sentence where there is none."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import fdrsvm.native
from fdrsvm.errors import InvalidInputError
from fdrsvm.native import _choice, _processor

PACKAGE = Path(fdrsvm.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
TRY = """
from fdrsvm.errors import FDRSVMError
try:
    import fdrsvm.native
except FDRSVMError as error:
    print(error)
"""


@pytest.fixture
def copy(tmp_path):
    """The package without anything compiled."""
    (tmp_path / "fdrsvm" / "native").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "native/__init__.py", "native/_choice.py"):
        shutil.copy(PACKAGE / name, tmp_path / "fdrsvm" / name)
    return tmp_path


def say(copy):
    run = subprocess.run(
        [sys.executable, "-S", "-c", TRY],  # -S: an editable install must not be found
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def levels_here():
    return [level for level in _processor.levels() if _choice._is_compiled(level)]


def test_the_best_level_that_is_compiled_and_runs_is_taken():
    best = levels_here()[0]
    assert _choice.choose_level(None) == _choice.choose_level("") == best
    assert os.environ.get("FDRSVM_LEVEL", best) == fdrsvm.native.LEVEL


def test_every_level_that_runs_can_be_forced_and_is_loaded():
    for level in levels_here():
        code = "import fdrsvm.native as n; print(n.LEVEL, n._core.__name__)"
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"FDRSVM_LEVEL": level},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.split() == [level, f"fdrsvm.native._core_{level}"]


@pytest.mark.parametrize("wrong", ["sse9", "AVX2", " ", "../baseline"])
def test_another_level_is_refused(wrong):
    with pytest.raises(InvalidInputError, match=r"FDRSVM_LEVEL: must be one of .* here; it is"):
        _choice.choose_level(wrong)


def test_a_level_that_the_processor_lacks_is_refused(monkeypatch):
    lesser = type(_processor)("lesser")
    lesser.levels = lambda: ("baseline",)
    monkeypatch.setattr(_choice, "import_module", lambda name: lesser)
    monkeypatch.setattr(_choice, "_is_compiled", lambda level: True)
    assert _choice.choose_level(None) == "baseline"
    with pytest.raises(InvalidInputError, match="must be one of baseline here; it is 'avx2'"):
        _choice.choose_level("avx2")


def test_a_package_without_its_compiled_part_says_so(copy):
    said = say(copy)
    assert said.startswith("the compiled part of fdrsvm is missing, or was made for another Python")
    assert "pip install --force-reinstall fdr-svm" in said
    assert said.count("\n") == 1


def test_a_package_without_a_kernel_says_so(copy):
    shutil.copy(_processor.__file__, copy / "fdrsvm" / "native")
    assert say(copy).startswith("no kernel of fdrsvm was compiled for this processor; install it")


@pytest.mark.parametrize("broken", ["_processor", "_core_baseline"])
def test_a_module_that_cannot_be_loaded_is_named(copy, broken):
    native = copy / "fdrsvm" / "native"
    shutil.copy(_processor.__file__, native)
    (native / f"_core_baseline{SUFFIX}").touch()
    for path in native.glob(f"{broken}*"):
        path.unlink()
    (native / f"{broken}{SUFFIX}").write_bytes(b"made for another processor")
    said = say(copy)
    assert said.startswith("the compiled part of fdrsvm is missing, or was made for another Python")
    assert broken in said
