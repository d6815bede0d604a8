"""What is released: the metadata agree; slow: wheel and sdist are whole and work when installed."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
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

SMOKE = (ROOT / "tests" / "smoke.py").read_text(encoding="utf-8")


def project_of(folder):
    """What a distribution says of itself."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_all_files_name_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.M) == [fdrsvm.__version__]
    paper = project_of("paper")
    assert paper["version"] == fdrsvm.__version__
    assert f"fdr-svm[experiments]=={fdrsvm.__version__}" in paper["dependencies"]


def test_both_distributions_have_one_licence_and_need_the_same_python():
    assert (ROOT / "paper" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    paper, own = project_of("paper"), project_of(".")
    for name in ("requires-python", "license", "license-files", "authors"):
        assert paper[name] == own[name]
    needed = {line for line in paper["dependencies"] if not line.startswith("fdr-svm[")}
    ours = {*own["dependencies"], *own["optional-dependencies"]["experiments"]}
    # One bound for what both need.
    assert needed - ours == {"pandas>=2.2,<4", "pillow>=10,<14"}


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
    project = project_of(".")
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
    return built(tmp_path_factory.mktemp("dist"), ROOT)


@pytest.fixture(scope="module")
def paper_dist(tmp_path_factory):
    pytest.importorskip("build", reason="building needs the extra 'release'")
    return built(tmp_path_factory.mktemp("paper"), ROOT / "paper")


def built(folder, project):
    run = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder, project], capture_output=True, text=True
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
    assert {name for name in packed if name.endswith((".pyc", ".so", ".pyd"))} == set()


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_a_readme_without_broken_links(dist):
    with zipfile.ZipFile(only(dist, "*.whl")) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        head = Parser().parsestr(archive.read(metadata).decode("utf-8"))
    assert {name.split("/")[0] for name in names} == {"fdrsvm", metadata.split("/")[0]}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".pyi", ".j2")
    }
    assert sources | {"fdrsvm/py.typed"} <= set(names)
    strangers = ("paper", "reproduc", "trust", "experiments")
    assert [name for name in names if any(word in name for word in strangers)] == []
    compiled = {Path(name).name.split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    assert {"_processor", "_core_baseline"} <= compiled
    if platform.machine() in ("x86_64", "AMD64"):
        assert {"_core_avx2", "_core_avx512"} <= compiled
    assert head["Version"] == fdrsvm.__version__
    assert head["Description-Content-Type"] == "text/markdown"
    assert head.get_payload().startswith("# FDR-SVM")
    assert LINK.findall(head.get_payload()) == []


def run(folder, *command, **variables):
    """What a command prints, without anything of this environment."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=kept | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def install(python, folder, package, *options):
    """A new environment's programs, with a package and all that it requires."""
    run(folder, python, "-m", "venv", folder / "venv")
    commands = folder / "venv" / "bin"
    pip = (commands / "python", "-m", "pip", "install", "--quiet")
    run(folder, *pip, *options, package)
    return commands


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_the_package_works_in_a_clean_environment(dist, tmp_path, version):
    """A wheel on the Python that it was built with, the sdist on others."""
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    own = "{}.{}".format(*sys.version_info[:2])
    commands = install(python, tmp_path, only(dist, "*.whl" if version == own else "*.tar.gz"))
    assert run(tmp_path, commands / "python", "-W", "error", "-c", SMOKE) == "works\n"
    assert "usage" in run(tmp_path, commands / "fdrsvm", "--help").lower()
    assert fdrsvm.__version__ in run(tmp_path, commands / "fdrsvm", "--version")


@pytest.mark.slow
def test_the_paper_is_a_pure_wheel_of_its_own(paper_dist):
    wheel = only(paper_dist, "*.whl")
    assert wheel.name == f"fdr_svm_paper-{fdrsvm.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "paper" / "src"
    files = {path for path in source.rglob("*") if path.suffix in (".py", ".j2", ".toml")}
    wanted = {path.relative_to(source).as_posix() for path in files} | {"fdrsvm_paper/py.typed"}
    assert "fdrsvm_paper/templates/report.html.j2" in wanted
    assert {name for name in names if ".dist-info/" not in name} == wanted


@pytest.mark.slow
def test_reproduce_names_its_package_until_that_is_installed(dist, paper_dist, tmp_path):
    commands = install(sys.executable, tmp_path, only(dist, "*.whl"))
    program = commands / "fdrsvm"
    assert "reproduce" not in run(tmp_path, program, "--help")
    sought = subprocess.run([program, "reproduce", "table1"], capture_output=True, text=True)
    assert sought.returncode == 2
    assert sought.stdout == ""
    assert sought.stderr == (
        "fdrsvm: reproduce needs the package fdr-svm-paper; run pip install fdr-svm-paper. "
        "See 'fdrsvm --help'.\n"
    )
    pip = (commands / "python", "-m", "pip", "install", "--quiet")
    run(tmp_path, *pip, only(paper_dist, "*.whl"))
    shown = " ".join(run(tmp_path, program, "--help").split())
    assert "reproduce Repeat the paper's experiments" in shown
    quick = ("sensitivity", "--quick", "--output", "out")
    assert (
        run(tmp_path, program, "reproduce", *quick) == f"Report: {Path('out/report/index.html')}\n"
    )
    assert len(list((tmp_path / "out" / "figures").glob("*.svg"))) == 2


@pytest.fixture
def open_folder():
    """One that other accounts may read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_nobody(python):
    """How to run Python as an account that owns nothing, where that is possible."""
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    try:
        subprocess.run([*prefix, python, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return prefix


@pytest.mark.slow
def test_a_read_only_package_trains_for_an_account_without_a_home(dist, open_folder):
    commands = install(sys.executable, open_folder, only(dist, "*.whl"))
    package = only(open_folder, "venv/lib/python3*/site-packages/fdrsvm")
    before = sorted(package.rglob("*"))
    for path in [package, *before]:
        path.chmod(path.stat().st_mode & ~0o222)
    prefix = as_nobody(commands / "python")
    said = run(
        "/", *prefix, commands / "python", "-B", "-c", SMOKE, HOME="/nonexistent", XDG_CACHE_HOME=""
    )
    assert said == "works\n"
    assert sorted(package.rglob("*")) == before


@pytest.mark.slow
def test_without_a_compiler_and_without_zig_the_build_says_so(tmp_path):
    """The backend on a path without programs, in an environment without ziglang."""
    pytest.importorskip("scikit_build_core", reason="`make` installs it")
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'native')!r}); import build_backend as b; "
    clean = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    build = [sys.executable, "-c", code + f"b.build_wheel({str(tmp_path)!r})"]
    done = subprocess.run(build, cwd=ROOT, env=clean, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.strip().splitlines()[-1].startswith("fdr-svm: no C++ compiler was found")
    needs = [sys.executable, "-c", code + "print(*b.get_requires_for_build_wheel())"]
    done = subprocess.run(needs, cwd=ROOT, env=clean, capture_output=True, text=True, check=True)
    assert "ziglang" in done.stdout
    done = subprocess.run(
        needs, cwd=ROOT, env=clean | {"CXX": "c++"}, capture_output=True, text=True, check=True
    )
    assert "ziglang" not in done.stdout
