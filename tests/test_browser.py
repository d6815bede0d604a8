"""The pages in a real browser: every figure drawn, no complaint, nothing beyond a phone's edge."""

import pytest

from fdrsvm.demo.demo_report import write_report as write_demo
from fdrsvm.demo.four_plants import run_demo
from fdrsvm_paper.figures import draw_figures
from fdrsvm_paper.report import write_report
from fdrsvm_paper.tables import (
    joining,
    rounds,
    scalability,
    table1,
    wilcoxon_table,
)
from tests.browser import NAMES, find_chromium, see
from tests.paper import reproduction_rows as made

PHONE, DESKTOP = 390, 1000

GOOD = """<!doctype html><html><head><title>good</title></head><body>
<svg aria-label="fine" width="300" height="200"><defs><clipPath id="c"><rect width="300"
height="200"/></clipPath></defs>{lines}<g clip-path="url(#c)"/></svg>{more}</body></html>"""
LINES = "".join(f'<path d="M 0 {y} L 250 {y + 5}" stroke="black"/>' for y in range(0, 150, 20))


@pytest.fixture(scope="module")
def browser():
    found = find_chromium()
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, $CHROMIUM is not set")
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rows = made.all_rows()
    tables = {
        "table1-text": table1(rows["table1-text"], "text"),
        "wilcoxon-text": wilcoxon_table(rows["table1-text"], "text"),
        "scalability-text": scalability(rows["scalability-text"]),
        "rounds": rounds(rows["rounds"]),
    }
    tables |= {f"joining-text-{i}": each for i, each in enumerate(joining(rows["joining-text"]))}
    run = {"commands": ["fdrsvm reproduce all --output " + "a-long-name/" * 20]}
    path = write_report(rows, tables, draw_figures(rows), run, tmp_path_factory.mktemp("report"))
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    data, outcomes = run_demo(0)
    path = write_demo(data, outcomes, tmp_path_factory.mktemp("demo"), 0)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_report_is_drawn_without_a_complaint_and_fits(browser, report, tmp_path, width):
    seen = see(browser, report, tmp_path, width)
    assert seen.faults == []
    assert seen.width == width
    assert len(seen.svgs) == report.count("<svg ") == len(draw_figures(made.all_rows()))


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_demo_is_drawn_without_a_complaint_and_fits(browser, demo, tmp_path, width):
    seen = see(browser, demo, tmp_path, width)
    assert seen.faults == seen.crowded == []
    assert len(seen.svgs) == demo.count("<svg ") == 2


def test_a_good_page_has_no_faults(browser, tmp_path):
    assert see(browser, GOOD.format(lines=LINES, more=""), tmp_path, PHONE).faults == []


OUTSIDE = LINES.replace("M 0", "M 900").replace("L 250", "L 950")
FAULTY = GOOD.format(
    lines=LINES,
    more=f"""
<svg aria-label="empty" width="300" height="200"><text y="20">no curve</text></svg>
<svg aria-label="outside" width="300" height="200">{OUTSIDE}</svg>
<svg aria-label="flat" width="300" height="0">{LINES}</svg>
<svg aria-label="crowded" width="300" height="200">{LINES}<text x="9" y="40">0.6044</text>
<text x="30" y="42">0.6045</text></svg>
<svg aria-label="dangling" width="300" height="200">{LINES}<use href="#nowhere"/></svg>
<p id="c"></p><img src="missing.png" alt=""><div style="width: 600px">wide</div>
<script>console.error("dear me")</script><script>nonsense()</script>""",
)


@pytest.fixture(scope="module")
def faulty(browser, tmp_path_factory):
    return see(browser, FAULTY, tmp_path_factory.mktemp("faulty"), PHONE)


@pytest.fixture(scope="module")
def faults(faulty):
    return faulty.faults


def test_texts_that_overlap_are_found(faulty):
    assert faulty.crowded == ["figure 'crowded': 0.6044 and 0.6045"]


@pytest.mark.parametrize(
    "fault",
    [
        "figure 'empty' has only 0 visible shapes",
        "figure 'outside' has only 0 visible shapes",
        "figure 'flat' is only 300 x 0 pixels",
        "figure 'dangling' refers to 'nowhere'",
        "id 'c' is there twice",
        "error: dear me",
        "nonsense is not defined",
        "cannot load",
        "console: ",
        "needs 608 pixels of 390",
        "DIV sticks out",
    ],
)
def test_what_is_wrong_with_a_page_is_found(faults, fault):
    assert any(fault in found for found in faults), faults


def test_what_is_right_on_a_faulty_page_is_not_blamed(faults):
    assert not any("'fine'" in found for found in faults)


def test_a_box_that_scrolls_by_itself_may_be_wide(browser, tmp_path):
    box = '<div class="scroll" style="overflow-x: auto"><p style="width: 600px">wide</p></div>'
    assert see(browser, GOOD.format(lines=LINES, more=box), tmp_path, PHONE).faults == []


def test_the_browser_can_be_named(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/bin/sh")
    assert find_chromium() == "/bin/sh"
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setenv("PATH", "")
    assert find_chromium() is None
