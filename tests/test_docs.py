"""The pages: their code runs, their formulas hold, their tables are measured, their links work."""

import importlib.util
import math
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import fdrsvm
from fdrsvm import DRSVC, DegenerateModelWarning, worst_case_distribution, worst_case_risk
from tests.browser import FLAGS, NAMES, find_chromium

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("api/*.md"), *ROOT.glob("*.md")])


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


check_site = load(DOCS / "check_site.py")
sizes = load(DOCS / "publish_message_sizes.py")
docstrings = load(DOCS / "_extensions" / "docstrings.py")
local_paths = load(DOCS / "_extensions" / "local_paths.py")


# ---------------------------------------------------------------- pages as text


def test_the_code_of_the_first_page_prints_what_the_page_says(capsys):
    scope = {}
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", read("index.md"), re.S)
    assert len(blocks) >= 4
    for code, printed in blocks:
        exec(compile(code, "docs/index.md", "exec"), scope)
        assert capsys.readouterr().out == printed
    assert scope["model"].gap_ <= 1e-4


def anchors(text):
    """As repository hosts and MyST make them of headings."""
    heads = re.findall(r"^#{1,6} (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = page if not path else page.parent / path
        if path.startswith("gallery/"):  # made when the site is built
            stem = Path(path).name
            assert stem == "index" or (ROOT / "examples" / f"{stem}.py").exists(), target
            continue
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), target


# The changelog is left out: it names code of earlier releases.
NAMING_CODE = [page for page in PAGES if page.name != "CHANGELOG.md"] + [
    ROOT / "native" / "README.md"
]
FOLDERS_OF_CODE = ("src", "native", "benchmarks", "docs", "examples", "paper", "tests")
CODE = re.compile(r"(?<![\w./<-])[\w./-]*\w\.(?:py|pyi|cpp|hpp)\b")
DOTTED = re.compile(r"(?<![\w./-])fdrsvm(?:_paper)?(?:\.\w+)+")
NOT_MODULES = {
    "fdrsvm.commands": "the group of entry points by which other packages add commands",
}


def is_file_of_the_project(path, page):
    """Whether a path is one from the root, the package, the kernels or the page; or a bare name."""
    folders = (ROOT, ROOT / "src" / "fdrsvm", ROOT / "native", page.parent)
    if "/" in path:
        return any((folder / path).is_file() for folder in folders)
    return any(next((ROOT / folder).rglob(path), None) for folder in FOLDERS_OF_CODE)


def resolves(dotted):
    """Whether a dotted name is a module, or leads from one by attributes."""
    names = dotted.split(".")
    for n in range(len(names), 0, -1):
        try:
            value = importlib.import_module(".".join(names[:n]))
        except ModuleNotFoundError:
            continue
        for name in names[n:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False


@pytest.mark.parametrize("page", NAMING_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    gone = {path for path in CODE.findall(text) if not is_file_of_the_project(path, page)}
    assert gone == set(), "files that are not there"
    dotted = set(DOTTED.findall(text)) - set(NOT_MODULES)
    assert {name for name in dotted if not resolves(name)} == set(), "names that are not there"
    for module, names in re.findall(r"^from (fdrsvm[\w.]*) import ([\w, ]+)$", text, re.M):
        for name in names.split(", "):
            assert resolves(f"{module}.{name}"), f"{module}.{name}"


LABEL = re.compile(r"(?<![\w\])])\[([a-z]+(?:-[a-z]+)*)\](?!\()")


def test_labels_that_kernels_cite_are_on_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    defined = set(re.findall(r"^### \[([a-z -]+)\]", pages, re.M))
    assert len(defined) > 30
    for path in sorted((ROOT / "native").rglob("*.[ch]pp")):
        comments = re.findall(r"//(.*)", path.read_text(encoding="utf-8"))
        cited = {label for line in comments for label in LABEL.findall(line)}
        assert cited - defined == set(), path.name


def test_every_page_has_its_place_in_the_site():
    listed = set(re.findall(r"^([\w/-]+)$", read("index.md"), re.M))
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert pages <= listed
    assert {"gallery/index", "api/index"} <= listed
    assert {path.stem for path in DOCS.glob("api/*.md")} - {"index"} <= set(
        re.findall(r"^([\w-]+)$", read("api/index.md"), re.M)
    )


def test_every_public_name_is_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("api/*.md"))
    for package in ("", ".estimators", ".evaluation", ".federated", ".solvers", ".datasets"):
        module = importlib.import_module(f"fdrsvm{package}")
        for name in module.__all__:
            kind = r"(?:auto(?:class|function|exception|module)|py:data):: (?:[\w.]+\.)?"
            assert re.search(rf"{kind}{name}$", text, re.M), f"fdrsvm{package}.{name}"


def test_links_out_of_the_site_become_plain_paths():
    text = "[rows](reproduction/rows), [a](maths.md#risk), [b](../benchmarks/results), [c](https://x.org)"
    shown = local_paths.plain_paths(text, DOCS, DOCS)
    assert shown == "`rows`, [a](maths.md#risk), `b`, [c](https://x.org)"
    up = "[maths](../maths.md), [d](../../README.md)"
    assert local_paths.plain_paths(up, DOCS / "api", DOCS) == "[maths](../maths.md), `d`"


@pytest.mark.parametrize(
    ("line", "escaped"),
    [
        ("f >= floor ||w||_*", r"f >= floor \|\|w\|\|_\*"),
        ("**coef_, intercept_** and x_n", r"**coef\_, intercept\_** and x_n"),
        ("``||w||_*`` and :func:`a_`", "``||w||_*`` and :func:`a_`"),
        (">>> model.coef_", ">>> model.coef_"),
    ],
)
def test_plain_mathematics_in_docstrings_is_no_markup(line, escaped):
    assert docstrings.escape(line) == escaped


# ---------------------------------------------------------------- what the pages claim


def test_the_sizes_on_the_data_protection_page_are_measured():
    text = read("data-protection.md")
    assert len(sizes.MARKS.findall(text)) == 2
    assert sizes.page_with_tables(text) == text


def test_what_a_plant_sends_does_not_grow_with_its_rows():
    few, many = (sizes.answers_of(sizes.Bundle(), rows, 5) for rows in (40, 400))
    assert [len(message) for message in few] == [len(message) for message in many]


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
@pytest.mark.parametrize("n_features", [1, 5, 40])
def test_the_mean_length_of_errors_is_as_choosing_says(norm, order, n_features, rng):
    s, n = 0.1, 20_000
    lengths = np.linalg.norm(s * rng.normal(size=(n, n_features)), order, axis=1)
    said = {
        "l1": s * n_features * math.sqrt(2.0 / math.pi),
        "l2": s * math.sqrt(n_features),
        "linf": s * math.sqrt(2.0 * math.log(2.0 * n_features)),
    }[norm]
    error = 5.0 * lengths.std() / math.sqrt(n)  # five standard errors
    assert lengths.mean() <= said + error
    if norm == "l1":
        assert lengths.mean() >= said - error


def noisy_rows(rng, n=60):
    clean = 0.2 + 0.6 * rng.random((n, 3))
    y = np.where(clean @ [1.0, -1.0, 0.5] > 0.25, 1.0, -1.0)
    return (
        clean,
        y,
        clean + 0.02 * rng.normal(size=clean.shape),
        np.where(rng.random(n) < 0.1, -y, y),
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_ball_of_the_radius_that_choosing_gives_holds_the_clean_rows(norm, rng):
    clean, y, X, noisy = noisy_rows(rng)
    kappa, order = 0.3, {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    moved = np.linalg.norm(X - clean, order, axis=1).mean()
    epsilon = moved + kappa * np.mean(noisy != y)
    for _ in range(20):
        w = rng.normal(size=3) * 4.0
        on_clean_rows = np.maximum(0.0, 1.0 - y * (clean @ w)).mean()
        guarded = worst_case_risk(w, X, noisy, epsilon=epsilon, kappa=kappa, norm=norm).value
        assert on_clean_rows <= guarded * (1.0 + 1e-12)


def test_no_more_labels_flip_than_epsilon_over_kappa(rng):
    _, _, X, y = noisy_rows(rng)
    X, largest = np.clip(X, 0.0, 1.0), 0.0
    for epsilon, kappa in ((0.01, 0.1), (0.05, 0.2), (0.02, 1.0)):
        for _ in range(10):
            w = rng.normal(size=3) * 5.0
            ball = {"epsilon": epsilon, "kappa": kappa, "support": "unit-box"}
            worst = worst_case_distribution(w, X, y, **ball)
            flipped = worst.weights[worst.labels != y[worst.source_index]].sum()
            assert flipped <= epsilon / kappa + 1e-12
            largest = max(largest, flipped * kappa / epsilon)
    assert largest == pytest.approx(1.0)  # the bound is attained


def test_nothing_is_learned_where_half_of_the_labels_may_flip(rng):
    _, _, X, y = noisy_rows(rng)
    for ratio, learns in ((0.5, False), (0.1, True)):
        with nullcontext() if learns else pytest.warns(DegenerateModelWarning, match="1/2"):
            model = DRSVC(epsilon=0.01, kappa=0.01 / ratio).fit(X, y)
        assert (model.objective_ < 0.99) == learns
    for _ in range(20):
        w = rng.normal(size=3) * 5.0
        assert worst_case_risk(w, X, y, epsilon=0.01, kappa=0.02).value >= 1.0 - 1e-12


# ---------------------------------------------------------------- the built site


GOOD = """<html><head><link rel="stylesheet" href="a.css"><link rel="canonical" href="https://x.org/">
</head><body id="top"><a href="https://x.org">elsewhere</a><a href="#top">up</a>
<a href="b.html#here">b</a><img src="data:image/png;base64,AA=="></body></html>"""
OTHER = '<html><body><p id="here"></p></body></html>'


def site_with(folder, body="", css=""):
    (folder / "a.html").write_text(GOOD.replace("</body>", f"{body}</body>"), encoding="utf-8")
    (folder / "b.html").write_text(OTHER, encoding="utf-8")
    (folder / "a.css").write_text(css, encoding="utf-8")
    return folder


def test_a_whole_site_has_no_faults(tmp_path):
    assert check_site.faults(site_with(tmp_path)) == []
    assert check_site.main(tmp_path) == 0


@pytest.mark.parametrize(
    ("body", "css", "fault"),
    [
        ('<script src="https://cdn.org/x.js"></script>', "", "a.html: loads https://cdn.org/x.js"),
        ('<img src="//cdn.org/x.png">', "", "a.html: loads //cdn.org/x.png"),
        (
            '<img srcset="x.png 2x, https://y.org/z.png 3x">',
            "",
            "a.html: loads https://y.org/z.png",
        ),
        ('<p style="background: url(http://y.org/z.png)">', "", "a.html: loads http://y.org/z.png"),
        ('<img src="missing.png">', "", "a.html: lacks missing.png"),
        ('<a href="c.html">c</a>', "", "a.html: links to c.html, which is not there"),
        ('<a href="b.html#x">b</a>', "", "a.html: links to b.html#x: no such place on that page"),
        ('<a href="#x">x</a>', "", "a.html: links to #x: no such place on that page"),
        (
            "<p>||w||_<em>* and ||w||</em>*</p>",
            "",
            "a.html: emphasis: '* and ||w||'; escape _ and *",
        ),
        ("", '@import "https://f.org/font.css";', "a.css: loads https://f.org/font.css"),
        ("", "p { background: url('//f.org/a.png') }", "a.css: loads //f.org/a.png"),
    ],
)
def test_what_is_wrong_with_a_site_is_found(tmp_path, body, css, fault):
    assert fault in check_site.faults(site_with(tmp_path, body, css))
    assert check_site.main(tmp_path) == 1


def test_an_empty_folder_is_no_site(tmp_path):
    assert check_site.faults(tmp_path) != []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without its pictures: the examples have tests of their own."""
    pytest.importorskip("sphinx", reason="the site needs the extra 'docs'")
    pytest.importorskip("sphinx_gallery", reason="the site needs the extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples"):  # a copy, since the gallery is made among the sources
        ignored = shutil.ignore_patterns("gallery", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0"]
    run = subprocess.run(
        [*command, folder / "docs", folder / "html"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return folder / "html"


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site):
    assert check_site.faults(site) == []


@pytest.mark.slow
def test_tags_are_links_to_their_equations(site):
    page = (site / "solvers.html").read_text(encoding="utf-8")
    assert re.search(r'href="maths\.html#flips"[^>]*>\[flips\]<', page)
    reference = (site / "api" / "federated.html").read_text(encoding="utf-8")
    assert re.search(r'href="\.\./maths\.html#practical"[^>]*>\[practical\]<', reference)


@pytest.mark.slow
def test_the_site_says_of_which_release_it_is(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert f"FDR-SVM {fdrsvm.__version__}" in page


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.html", "maths.html", "api/estimators.html"])
def test_a_page_opens_in_a_browser_without_a_complaint(site, page, tmp_path):
    browser = find_chromium()
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, $CHROMIUM is not set")
    run = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={tmp_path}", "--dump-dom", (site / page).as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "</html>" in run.stdout
    assert re.findall(r":CONSOLE[^\]]*\] (.*)", run.stderr) == []
