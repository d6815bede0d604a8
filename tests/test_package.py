"""What `import fdrsvm` promises, and that documentation and code name the same equations."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fdrsvm

ROOT = Path(__file__).parents[1]


def test_importing_the_package_loads_no_heavy_library():
    code = "import fdrsvm, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & {"numba", "scipy", "sklearn", "matplotlib", "flwr", "numpy"}


def test_training_needs_no_compiler():
    code = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # importing either is an error
import fdrsvm
for name in fdrsvm.__all__: getattr(fdrsvm, name)
X = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]]
model = fdrsvm.FDRSVC(epsilon=0.05).fit(X, [0, 0, 1, 1], clients=[0, 1, 0, 1])
assert model.gap_ <= 1e-4
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there_and_documented():
    for name in fdrsvm.__all__:
        assert getattr(fdrsvm, name).__doc__
        assert name in dir(fdrsvm)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fdrsvm.nonsense  # noqa: B018


def docstrings(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def test_equations_that_code_cites_are_in_the_documentation():
    tags = {
        tag
        for path in (ROOT / "docs").glob("*.md")
        for tag in re.findall(r"^### \[([a-z-]+)\]", path.read_text(encoding="utf-8"), re.M)
    }
    cited = {
        tag
        for folder in ("src", "paper/src", "benchmarks/trust")
        for path in (ROOT / folder).rglob("*.py")
        for text in docstrings(path)
        for tag in re.findall(r"(?<!\w)\[([a-z]+(?:-[a-z]+)*)\]", text)
    }
    assert len(cited) >= 6
    assert cited <= tags
