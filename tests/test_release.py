"""What is released: the metadata agree; slow: wheel and sdist are whole and work when installed."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from itertools import chain
from pathlib import Path

import pytest

import fdrsvm

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
LINK = re.compile(r"\]\((?!https?:|#)[^)]*\)")

SMOKE = """
import sys, tempfile
from pathlib import Path
import numpy as np
import fdrsvm
from fdrsvm import FDRSVC
assert Path(fdrsvm.__file__).is_relative_to(sys.prefix), fdrsvm.__file__
assert (Path(fdrsvm.__file__).parent / "py.typed").exists()
X = np.array([[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]])
y, plants = ["healthy", "healthy", "worn", "worn"], ["north", "south", "north", "south"]
model = FDRSVC(epsilon=0.05, kappa=0.5).fit(X, y, clients=plants)
assert model.gap_ <= 1e-4 and abs(model.objective_ - 0.228) < 1e-3
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    model.save(path)
    again = FDRSVC.load(path)
assert (again.coef_ == model.coef_).all() and again.predict(X).tolist() == y
print("works")
"""


def test_all_files_name_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.M) == [fdrsvm.__version__]


def test_the_citation_names_the_paper():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    names = re.findall(r"family-names: (\w+)\n +given-names: (\w+)", citation)
    paper = ["Michael Ibrahim", "Heraldo Rozas", "Nagi Gebraeel", "Weijun Xie"]
    assert [f"{given} {family}" for family, given in names] == paper
    assert "Support Vector Machine via a Mixture of Wasserstein Balls Ambiguity Set" in citation
    assert "https://proceedings.mlr.press/v286/ibrahim25a.html" in citation


def test_pre_commit_runs_the_linters_of_make_lint_and_fetches_nothing():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)[1]
    linters = {line.split("$(BIN)/")[1].split()[0] for line in recipe.splitlines()}
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"entry: \.venv/bin/([\w-]+)", config)) == linters
    assert re.findall(r"- repo: (\S+)", config) == ["local"]


def test_every_extra_is_in_all_and_bounded():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.search(r"\[(.*)\]", everything)[1].split(",")) == set(extras) - {"all"}
    for needed in [*project["dependencies"], *chain.from_iterable(extras.values())]:
        assert needed.startswith("fdr-svm[") or "<" in needed, needed


def find_python(version):
    """An interpreter of this version: on the path, or one of pyenv's."""
    found = shutil.which(f"python{version}")
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    return next((str(path) for path in [*kept, found] if path), None)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    pytest.importorskip("build", reason="building needs the extra 'release'")
    folder = tmp_path_factory.mktemp("dist")
    run = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder, ROOT], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return folder


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


@pytest.mark.slow
def test_the_sdist_holds_all_that_the_repository_holds(dist):
    git = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if git.returncode != 0:
        pytest.skip("not a checkout: nothing to compare with")
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    there = {name for name in git.stdout.split("\n") if name and (ROOT / name).exists()}
    assert {name for name in there if not name.startswith(".ci/")} - packed == set()
    assert {name for name in packed if name.endswith((".nbi", ".nbc", ".pyc"))} == set()


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_a_readme_without_broken_links(dist):
    with zipfile.ZipFile(only(dist, "*.whl")) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        head = Parser().parsestr(archive.read(metadata).decode("utf-8"))
    assert {name.split("/")[0] for name in names} == {"fdrsvm", metadata.split("/")[0]}
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert sources | {"fdrsvm/py.typed"} <= set(names)
    assert head["Version"] == fdrsvm.__version__
    assert head["Description-Content-Type"] == "text/markdown"
    assert head.get_payload().startswith("# FDR-SVM")
    assert LINK.findall(head.get_payload()) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_in_a_clean_environment(dist, tmp_path, version):
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True, env=clean)
    commands = tmp_path / "venv" / "bin"

    def run(*command):
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run(commands / "python", "-m", "pip", "install", "--quiet", only(dist, "*.whl"))
    assert run(commands / "python", "-W", "error", "-c", SMOKE) == "works\n"
    assert "usage" in run(commands / "fdrsvm", "--help").lower()
    assert fdrsvm.__version__ in run(commands / "fdrsvm", "--version")
