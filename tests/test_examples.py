"""The gallery's examples: all are listed, each says what it shows; slow: each runs and draws."""

import ast
import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

_spec = importlib.util.spec_from_file_location(
    "example_order", ROOT / "docs" / "_extensions" / "example_order.py"
)
order = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(order)


def test_the_gallery_lists_all_examples():
    assert sorted(order.EXAMPLES) == [path.stem for path in EXAMPLES]
    keys = [order.ExampleOrder("examples")(path.name) for path in EXAMPLES]
    assert sorted(keys) == list(range(len(EXAMPLES)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_says_what_it_shows(path):
    title, underline, *rest = ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()
    assert underline == "=" * len(title)
    assert len(" ".join(rest).split()) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_prints_and_draws(path, capsys, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")

    plt.close("all")
    monkeypatch.delenv("DISPLAY", raising=False)  # so that show() has nothing to say
    runpy.run_path(str(path), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 3
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert len(np.unique(np.asarray(figure.canvas.buffer_rgba()).reshape(-1, 4), axis=0)) > 10
    plt.close("all")
