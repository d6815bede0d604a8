"""Figures of the reproduction: which there are, what they show, and how they become files."""

import re

import pytest

from fdrsvm_paper.drawing import LOOKS, as_svg, look, save_figures, short_name
from fdrsvm_paper.figures import draw_figures
from tests.paper import reproduction_rows as made

NAMES = {
    "table1-text",
    "table2-text",
    "joining-text-all",
    "joining-text-own",
    "sensitivity-text-nominal",
    "sensitivity-text-both",
    "scalability-text",
    "convergence-linf",
    "rounds-linf",
}


@pytest.fixture(scope="module")
def figures():
    return draw_figures(made.all_rows())


def curves(axes):
    return {tuple(line.get_xdata()): list(line.get_ydata()) for line in axes.get_lines()}


def test_every_study_has_its_figures(figures):
    assert set(figures) == NAMES
    for figure in figures.values():
        assert figure.get_axes()
        assert figure.get_figwidth() < 5.0


@pytest.mark.parametrize("missing", sorted(made.all_rows()))
def test_a_missing_file_leaves_out_its_figures_and_no_other(missing, figures):
    rows = {name: rows for name, rows in made.all_rows().items() if name == missing}
    alone = set(draw_figures(rows))
    assert alone == {name for name in NAMES if name.startswith(missing)}
    assert draw_figures({missing: []}) == {}


def test_names_of_files_may_have_their_ending():
    assert set(draw_figures({"rounds.csv": made.rounds()})) == {"rounds-linf"}


def test_rows_cut_short_are_drawn_as_far_as_they_go():
    rows = made.all_rows()
    broken = {name: [*part[: len(part) // 2], {"method": "ADMM"}] for name, part in rows.items()}
    assert "table1-text" in draw_figures(broken)


def test_sensitivity_has_a_row_a_parameter_a_column_a_set_and_the_central_line(figures):
    figure = figures["sensitivity-text-nominal"]
    axes = figure.get_axes()
    assert len(axes) == 4  # T and rho, two sets of leaks
    assert [each.get_xlabel() for each in axes] == ["rounds T"] * 2 + ["ADMM penalty rho"] * 2
    assert [each.get_xscale() for each in axes] == ["linear", "linear", "log", "log"]
    found = curves(axes[0])
    assert [0.95, 0.95] in found.values()
    by_colour = {line.get_color(): list(line.get_ydata()) for line in axes[0].get_lines()}
    assert by_colour[look("ADMM").colour] == pytest.approx([0.7, 0.8, 0.9])
    assert by_colour[look("SM").colour] == pytest.approx([0.8] * 3)


def test_scalability_draws_medians_on_a_logarithmic_axis(figures):
    axes = figures["scalability-text"].get_axes()
    assert len(axes) == 2
    assert {each.get_yscale() for each in axes} == {"log"}
    by_colour = {line.get_color(): list(line.get_ydata()) for line in axes[0].get_lines()}
    assert by_colour[look("Bundle").colour] == pytest.approx([0.1, 0.2])


def test_rounds_show_the_best_parameter_and_who_does_not_get_there(figures):
    (axes,) = figures["rounds-linf"].get_axes()
    marks = {(line.get_marker(), float(line.get_xdata()[0])) for line in axes.get_lines()}
    assert (look("Bundle").marker, 10.0) in marks
    assert (look("ADMM").marker, 40.0) in marks
    assert (">", 80.0) in marks  # SM, beyond the largest


def test_rounds_without_a_gap_are_left_out_of_the_convergence(figures):
    (axes,) = figures["convergence-linf"].get_axes()
    assert {tuple(line.get_xdata()) for line in axes.get_lines()} == {(2.0, 3.0, 4.0)}


def test_a_method_has_one_look_under_all_its_names():
    assert look("Bundle (FDR-SVM, certified)") == look("Bundle") != look("Bundle summed")
    assert look("Central DR-SVM") == look("Central")
    assert short_name("FedDRO (KL)") == "FedDRO"
    assert len({each.colour for each in LOOKS.values()}) == len(LOOKS)


def test_ids_are_unique_over_figures_and_each_reference_has_its_own(figures):
    svgs = [as_svg(figure, name) for name, figure in figures.items()]
    svgs.append(as_svg(figures["table1-text"], "again"))
    ids = [found for svg in svgs for found in re.findall(r' id="([^"]+)"', svg)]
    assert len(ids) == len(set(ids)) > len(svgs)
    for svg in svgs:
        assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg)) == set(
            re.findall(r' id="([^"]+)"', svg)
        )


def test_text_stays_text_and_keeps_its_digits(figures):
    svg = as_svg(figures["sensitivity-text-nominal"], "s", 'a "quoted" <name>')
    assert 'aria-label="a &quot;quoted&quot; &lt;name>"' in svg
    for label in ("leaks 1, 4, 7, 10e-3", "rounds T", "best central", "ADMM"):
        assert label in re.sub(r"<[^>]+>", "|", svg)
    rounds = as_svg(figures["rounds-linf"], "r")
    assert "to a certified gap of 0.0001" in rounds


def test_files_are_small_and_the_same_each_time(figures, tmp_path):
    chosen = {name: figures[name] for name in ("table1-text", "rounds-linf")}
    written = save_figures(chosen, tmp_path / "a" / "b")
    assert {path.name for path in written} == {f"{n}.{e}" for n in chosen for e in ("svg", "png")}
    again = save_figures(
        draw_figures({"table1-text": made.table1(), "rounds": made.rounds()}), tmp_path / "c"
    )
    for first, second in zip(written, again, strict=True):
        assert first.read_bytes() == second.read_bytes()
        assert first.stat().st_size < 100_000
        assert b"http" not in first.read_bytes().replace(b"http://www.w3.org", b"")
