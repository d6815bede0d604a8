"""The reproduction's page: complete, self-contained, and its sentences follow the rows."""

import html
import re
from dataclasses import dataclass

import pytest

from fdrsvm_paper import findings
from fdrsvm_paper.figures import draw_figures
from fdrsvm_paper.report import write_report
from fdrsvm_paper.tables import table1
from tests.paper import reproduction_rows as made


@dataclass(frozen=True)
class FakeTable:
    title: str

    def html(self):
        return f'<div class="scroll"><table><tr><td>{self.title}</td></tr></table></div>'


TABLES = {
    name: FakeTable(f"numbers of {name}")
    for name in (
        "table1-text",
        "wilcoxon-text",
        "table2-text-paper",
        "table2-text-side-by-side",
        "table2-text-labelling",
        "joining-text-paper-plant",
        "scalability-text",
        "rounds",
        "something-else",
    )
}
RUN = {
    "machine": {"cores": 2, "memory <GB>": 8, "python_version": "3.11"},
    "seeds": [0, 1],
    "commands": ["fdrsvm reproduce all"],
    "seconds": {"table1": 12.3456789},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rows = made.all_rows()
    folder = tmp_path_factory.mktemp("report") / "deep"
    path = write_report(rows, TABLES, draw_figures(rows), RUN, folder)
    assert path == folder / "index.html"
    return path.read_text(encoding="utf-8")


def text_of(page):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)))


def test_every_figure_and_table_is_there_once_with_a_paragraph(page):
    figures = re.findall(r'<figure id="figure-([^"]+)">(.*?)</figure>', page, re.S)
    assert sorted(name for name, _ in figures) == sorted(draw_figures(made.all_rows()))
    for name, body in figures:
        assert body.count("<svg") == 1
        assert "<b>Here:</b>" in body, name
    for table in TABLES.values():
        assert page.count(f"<td>{table.title}</td>") == 1
    tables = re.findall(r'<div class="table">\n<h4>([^<]*)</h4>\n(.*?)<div', page, re.S)
    assert len(tables) == len(TABLES)
    for title, paragraph in tables:
        assert "<b>Here:</b>" in paragraph or "something-else" in title


def test_the_page_needs_no_network_and_no_script(page):
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?https?:""", page)
    assert "<script" not in page
    assert "@import" not in page


def test_all_links_lead_somewhere_and_no_id_is_there_twice(page):
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert {"table1", "wilcoxon", "table2", "joining", "sensitivity", "rounds", "run"} <= set(ids)


def test_what_belongs_to_no_study_stands_at_the_end(page):
    assert page.index('id="more"') > page.index('id="rounds"')
    assert page.index("numbers of something-else") > page.index('id="more"')


def test_the_foot_tells_how_it_was_made(page):
    foot = text_of(page[page.index("<footer>") :])
    for words in (
        "cores: 2",
        "memory <GB>: 8",
        "python version",
        "fdrsvm reproduce all",
        "12.3457",
        "seconds",
    ):
        assert words in foot


def test_a_table_of_one_severity_set_is_told_about_that_set_only(page):
    for name, leaks, other in (
        ("paper", "1, 4, 7, 10e-3", "1, 2, 3, 4e-3"),
        ("labelling", "1, 2, 3, 4e-3", "1, 4, 7, 10e-3"),
    ):
        start = page.index(f"<h4>numbers of table2-text-{name}</h4>")
        paragraph = page[start : page.index("</p>", start)]
        assert f"Leaks {leaks}" in paragraph
        assert other not in paragraph


def test_an_empty_run_still_has_a_page(tmp_path):
    page = write_report({}, {}, {}, {}, tmp_path).read_text(encoding="utf-8")
    assert "0 figures and 0 tables from 0 rows" in page
    assert "<figure" not in page


def test_real_tables_fit_the_page(tmp_path):
    rows = {"table1-text": made.table1()}
    tables = {"table1-text": table1(rows["table1-text"], "text")}
    page = write_report(rows, tables, {}, {}, tmp_path).read_text(encoding="utf-8")
    assert page.count('<div class="scroll"') == 1
    assert page.index("<h4>Table 1") < page.index('<div class="scroll"')


# Sentences


def test_agreement_counts_cells_and_names_the_farthest():
    assert findings.table1_agrees(made.table1()).startswith("4 of 4 cells lie within one")
    moved = findings.table1_agrees(made.table1(shift=-0.03))
    assert moved.startswith("2 of 4 cells")  # the sd of sonar is larger than 0.03
    assert (
        "The farthest is ADMM on BCW: 0.937 here, 0.967 there, 2.1 standard deviations below."
        in moved
    )


def test_leaders_are_counted_and_incomplete_runs_told():
    rows = made.table1()
    assert "belongs to Bundle on 2." in findings.table1_leads(rows)
    assert findings.table1_leads(rows).endswith("Each mean is over 2 repetitions.")
    assert "1 to 2 repetitions (the run is not complete)" in findings.table1_leads(rows[1:])


def test_table2_says_which_leaks_fit_the_paper():
    said = findings.table2_agrees(made.table2())
    assert "5.0 points with leaks 1, 4, 7, 10e-3 and 0.0 points with leaks 1, 2, 3, 4e-3" in said
    assert said.endswith("leaks 1, 2, 3, 4e-3 are nearer to what it prints.")


def test_the_tests_are_compared_with_the_papers():
    said = findings.wilcoxon_says(made.table1())
    assert "found better than the baseline in 0 of 2 tests" in said  # two pairs prove nothing
    assert "1 come out as in the paper, which rejects 1 of them" in said


def test_joining_pays_on_all_leaks_and_costs_on_ones_own():
    on_all = findings.joining_says(made.joining())
    assert (
        "for 2 of 2 plants (counted in every setting) joining pays in these repetitions" in on_all
    )
    assert "10.0 points ahead of the plant's own" in on_all
    assert "A model of all rows pooled is 2.0 points ahead" in on_all
    on_own = findings.joining_says(made.joining(), "own")
    assert "for 2 it costs" in on_own
    assert "10.0 points behind the plant's own" in on_own


def test_sensitivity_names_peaks_what_matters_and_what_does_not():
    said = findings.sensitivity_says(made.sensitivity(), "nominal")
    assert "ADMM peaks at 0.900 (at T = 220)" in said
    assert "The best central model has 0.950." in said
    assert "What matters most is T for ADMM: its mean moves by 20.0 points." in said
    assert "T for SM" in said
    assert findings.sensitivity_says(made.sensitivity(), "noisy-labels") == ""


def test_scalability_names_the_fastest_and_the_growth():
    assert "at 20 clients Bundle is fastest with 200 ms, SM slowest with 2 s." in (
        findings.scalability_says(made.scalability())
    )
    assert "(a) 1.0 for SM and 1.0 for Bundle." in findings.growth_says(made.scalability())


def test_rounds_tell_who_gets_there():
    said = findings.rounds_says(made.rounds(), "linf")
    assert "Bundle gets there on 2 of 2 data sets, in 10 rounds" in said
    assert "ADMM gets there on 2 of 2 data sets, in 40 rounds" in said
    assert "SM does not get there on any of 2 data sets" in said
    assert "ADMM 4.0 times (2 cases)" in findings.rounds_compare(made.rounds())
    assert "Bundle ends at a gap of 1.0e-04 after 4 rounds" in findings.convergence_says(
        made.convergence(), "linf"
    )


def test_without_rows_nothing_is_said():
    for says in (
        findings.table1_agrees,
        findings.table1_leads,
        findings.table2_agrees,
        findings.table2_leads,
        findings.wilcoxon_says,
        findings.joining_says,
        findings.joining_by_leak_says,
        findings.scalability_says,
        findings.growth_says,
        findings.rounds_compare,
    ):
        assert says([]) == ""
    assert findings.rounds_says([], "linf") == findings.convergence_says([], "linf") == ""
