"""Tables keep their shape in all three forms, whatever rows there are and whatever they say."""

import re
from html.parser import HTMLParser

import pytest

from fdrsvm.errors import InvalidInputError
from fdrsvm_paper import tables
from fdrsvm_paper.paper_values import DATA_TITLES, SETTING_TITLES, TABLE1, TABLE2
from fdrsvm_paper.summary import BUNDLE, METHODS
from fdrsvm_paper.tables import Cell, Table

NASTY = r"a|b*c_d <i>&amp; 50% $x^2$ #1 {y}~\z" + "\n[3]"


def table1_rows(data=tuple(DATA_TITLES), methods=METHODS, n=3):
    return [
        {
            "data": column,
            "method": method,
            "repetition": str(repetition),
            "f1": repr(_paper_mean(TABLE1, method, column) + 0.001 * (repetition - 1)),
        }
        for column in data
        for method in methods
        for repetition in range(n)
    ]


def table2_rows(shifts, n=3):
    return [
        {
            "severities": severities,
            "setting": setting,
            "method": method,
            "repetition": str(repetition),
            "f1": repr(_paper_mean(TABLE2, method, setting) + shift + 0.01 * (repetition - 1)),
        }
        for severities, shift in shifts.items()
        for setting in SETTING_TITLES
        for method in METHODS
        for repetition in range(n)
    ]


def joining_rows():
    return [
        {
            "severities": severities,
            "setting": setting,
            "repetition": str(repetition),
            "plant": str(plant),
            "leak": f"0.00{(plant + repetition) % 2 + 1}",
            "n_train": str(100 * plant),
            "model": model,
            "f1_all": repr(0.8 + bonus + 0.001 * repetition),
            "f1_own": "0.9",
        }
        for severities in ("labelling", "paper")
        for setting in ("both", "nominal")
        for repetition in range(3)
        for plant in (1, 2)
        for model, bonus in (("local", 0.0), ("federated", 0.05), ("central", 0.06))
    ]


def scalability_rows():
    return [
        {
            "panel": panel,
            "x": str(x),
            "repetition": "0",
            "method": method,
            "seconds": repr(cost * x),
            "rounds": "12",
            "mccr": "0.93",
        }
        for panel in "ab"
        for x in (10, 50)
        for method, cost in (("SM", 0.2), ("Bundle", 0.1))
    ]


def rounds_rows():
    return [
        {
            "data": data,
            "norm": norm,
            "repetition": str(repetition),
            "method": method,
            "parameter": parameter,
            "target": target,
            "rounds": "" if method == "ADMM" and repetition and target == "0.0001" else rounds,
        }
        for data in ("ukm", "sonar")
        for norm in ("l2", "linf")
        for repetition in range(3)
        for method, parameter, rounds in (("ADMM", '{"rho": 0.01}', "40"), ("Bundle", "", "9"))
        for target in ("0.0001", "0.01")
    ]


def all_tables():
    return [
        tables.table1(table1_rows(), "paper-code"),
        tables.table1([], "text"),
        *tables.table2(table2_rows({"paper": 0.0, "labelling": 0.1}), "text"),
        tables.table2_side_by_side(table2_rows({"paper": 0.0, "labelling": 0.1}), "text"),
        tables.table2_side_by_side([], "text"),
        tables.wilcoxon_table(table1_rows()),
        tables.wilcoxon_table([]),
        *tables.joining(joining_rows()),
        tables.scalability(scalability_rows()),
        tables.scalability([]),
        tables.rounds(rounds_rows()),
        tables.rounds([]),
        Table(NASTY, (NASTY, "plain"), ((Cell(NASTY, NASTY, bold=True), Cell("-1")),), (NASTY,)),
    ]


def _paper_mean(paper, method, column):
    printed = paper.get(method, {}).get(column)
    return printed.mean if printed else 0.9


def cells_of(table, name):
    """A row by its first cell, with the column titles."""
    (row,) = [row for row in table.rows if row[0].text == name]
    return dict(zip(table.head, row, strict=True))


class Outline(HTMLParser):
    """Tags as they open and close, and the cells of each row."""

    def __init__(self):
        super().__init__()
        self.open, self.widths, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "tr":
            self.widths.append(0)
        elif tag in ("td", "th"):
            self.widths[-1] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


# Forms


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.title[:30])
def test_markdown_rows_have_one_width(table):
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    assert len(lines) == len(table.rows) + 2
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert bars == {len(table.head) + 1}
    assert table.markdown().endswith("\n")
    assert table.markdown().count("\n- ") == len(table.notes)


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.title[:30])
def test_latex_is_balanced_and_rows_have_one_width(table):
    text = table.latex()
    begun, ended = (re.findall(rf"\\{word}\{{(\w+)\}}", text) for word in ("begin", "end"))
    assert begun == ["table", "tabular"] == ended[::-1]
    unescaped = re.sub(r"\\[{}$&%#_\\]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    assert unescaped.count("$") % 2 == 0
    assert not re.search(r"[%#_~^]", unescaped)
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r" \\")]
    assert len(rows) >= len(table.rows) + 1
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {len(table.head) - 1}
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
    assert len(columns[1]) == len(table.head)
    assert text.isascii()


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.title[:30])
def test_html_is_balanced_and_rows_have_one_width(table):
    outline = Outline()
    outline.feed(table.html())
    assert outline.open == []
    assert outline.widths == [len(table.head)] * (len(table.rows) + 1)
    assert table.html().startswith('<div class="scroll"')
    assert table.title in "".join(outline.text)
    for note in table.notes:
        assert note in "".join(outline.text)


def test_special_characters_are_escaped():
    table = Table("t", ("a", "b"), ((Cell("x"), Cell(NASTY, bold=True)),))
    assert r"**a\|b\*c\_d \<i>&amp; 50%" in table.markdown()
    assert r"\textbf{a$|$b{*}c\_d $<$i$>$\&amp; 50\% \$x\textasciicircum{}2\$ \#1" in table.latex()
    assert r"\{y\}\textasciitilde{}\textbackslash{}z {[}3{]}" in table.latex()
    assert "<b>a|b*c_d &lt;i&gt;&amp;amp; 50%" in table.html()


def test_details_go_beside_below_and_on_a_line_of_their_own():
    table = Table("t", ("a", "b", "c"), ((Cell("x"), Cell("1±2", "-3", bold=True), Cell("4")),))
    assert re.search(r"\| x +\| \*\*1±2\*\* / -3 \| 4 +\|", table.markdown())
    assert "x & \\textbf{1$\\pm$2} & 4 \\\\\n & \\scriptsize $-$3 &  \\\\\n" in table.latex()
    assert "<td><b>1±2</b><br><small>-3</small></td><td>4</td>" in table.html()


def test_rows_of_another_width_are_refused():
    with pytest.raises(InvalidInputError, match="rows: must have 2 cells each"):
        Table("t", ("a", "b"), ((Cell("x"),),))


# Tables 1 and 2


def test_table1_has_ours_the_papers_and_the_difference():
    table = tables.table1(table1_rows(), "paper-code")
    assert table.head == ("method", *DATA_TITLES.values())
    assert [row[0].text for row in table.rows] == list(METHODS)
    sm = cells_of(table, "SM")
    assert sm["Banknote"] == Cell(".855±.001", ".855±.017 (+0.0)")
    assert cells_of(table, BUNDLE)["CB"] == Cell(".900±.001", bold=True)
    assert ".855±.001 / .855±.017 (+0.0)" in table.markdown()
    assert "0 of 56 cells differ" in " ".join(table.notes)
    assert "Repetitions: 3; in the paper: 50." in table.notes
    assert "paper-code" in table.title


def test_the_best_of_each_column_is_bold_with_its_ties():
    table = tables.table1(table1_rows(), "text")
    bold = [name for name in METHODS if cells_of(table, name)["Banknote"].bold]
    assert bold == ["Central DR-SVM", "FedSGD", "FedAvg", "FedProx", "ADMM", "ADMM-SC"]
    assert [name for name in METHODS if cells_of(table, name)["Parkinson's"].bold] == ["SM"]


def test_far_cells_are_counted_and_signed():
    rows = table1_rows(["ukm"], ["FedDRO (KL)", "SM"], n=1)
    rows[0]["f1"] = "0.700"
    rows[1]["f1"] = "1.0"
    table = tables.table1(rows, "text")
    assert cells_of(table, "FedDRO (KL)")["UKM"].detail == ".718±.001 (-18.0)"
    assert cells_of(table, "SM")["UKM"] == Cell("1.000", ".840±.031 (+5.2)", bold=True)
    assert "2 of 2 cells differ" in " ".join(table.notes)


def test_missing_methods_and_repetitions_are_told():
    rows = table1_rows(["bcw", "rice"], [name for name in METHODS if name != "FedAvg"])
    rows = [
        row
        for row in rows
        if (row["method"], row["data"], row["repetition"]) != ("SM", "rice", "2")
    ]
    table = tables.table1(rows, "text")
    assert table.head == ("method", "BCW", "Rice")
    assert cells_of(table, "FedAvg")["BCW"] == Cell("-", ".929±.016")
    assert cells_of(table, "SM")["Rice"].text.endswith(" (2 of 3)")
    assert (
        "Incomplete: of 3 repetitions FedAvg on BCW has 0, FedAvg on Rice has 0, SM on Rice has 2."
        in table.notes
    )
    assert "Not run: Banknote, CB, MM, Parkinson's, UKM." in table.notes


def test_a_run_cut_short_everywhere_is_told_against_what_it_should_have():
    table = tables.table1(table1_rows(["bcw"]), "text", repetitions=50)
    assert cells_of(table, "SM")["BCW"].text == ".957±.001 (3 of 50)"
    assert any(note.endswith("and 3 more cells.") for note in table.notes)


def test_methods_and_columns_that_are_not_the_papers_come_last():
    rows = table1_rows(["mine", "bcw"], ["Mine", "SM"])
    table = tables.table1(rows, "text")
    assert table.head == ("method", "BCW", "mine")
    assert table.rows[-1][0].text == "Mine"
    assert cells_of(table, "Mine")["BCW"].detail == ""


def test_table2_has_one_table_a_severity_set():
    found = tables.table2(table2_rows({"labelling": -0.05, "paper": 0.0}), "text")
    assert ["1, 4, 7, 10e-3" in table.title for table in found] == [True, False]
    assert "1, 2, 3, 4e-3" in found[1].title
    assert cells_of(found[0], "ADMM")["Both"] == Cell(".855±.010", ".855±.025 (+0.0)")
    assert cells_of(found[1], "ADMM")["Both"] == Cell(".805±.010", ".855±.025 (-2.0)")
    assert tables.table2([], "text") == []


def test_severity_sets_side_by_side():
    table = tables.table2_side_by_side(table2_rows({"paper": 0.1, "labelling": 0.02}), "text")
    rows = [row for row in table.rows if row[0].text == "SM"]
    assert [row[1].text for row in rows] == ["leaks 1, 4, 7, 10e-3", "leaks 1, 2, 3, 4e-3", "paper"]
    assert [row[4] for row in rows] == [
        Cell(".983±.010 (+4.5)"),
        Cell(".903±.010 (+0.9)", bold=True),
        Cell(".883±.022"),
    ]
    assert len([row for row in table.rows if row[0].text == BUNDLE]) == 2
    assert "Nearest to the paper with leaks 1, 2, 3, 4e-3: 40 of 40 cells." in table.notes


# The others


def test_wilcoxon_table_marks_what_the_paper_found_otherwise():
    base = [0.80, 0.82, 0.84, 0.86, 0.88]
    shifts = {"ADMM": 0.05, "FedSGD": 0.0, "FedAvg": 0.06, BUNDLE: 0.1}
    rows = [
        {"data": data, "method": method, "repetition": str(r), "f1": repr(f1 + shift)}
        for data in ("bcw", "banknote")
        for method, shift in shifts.items()
        for r, f1 in enumerate(base)
    ]
    table = tables.wilcoxon_table(rows, "text")
    assert table.head == ("test", "Banknote", "BCW")
    assert cells_of(table, "best of ours")["BCW"] == Cell("ADMM")
    against_sgd = cells_of(table, "best of ours > FedSGD")
    assert against_sgd["BCW"] == Cell("yes", "p = .031, paper yes")
    assert against_sgd["Banknote"] == Cell("yes", "p = .031, paper no", bold=True)
    assert cells_of(table, "best of ours > FedAvg")["BCW"] == Cell(
        "no", "p = 1.000, paper yes", bold=True
    )
    assert cells_of(table, "Bundle > FedAvg")["BCW"] == Cell("yes", "p = .031")
    assert cells_of(table, "Bundle > FedProx")["BCW"] == Cell("-")
    assert any(note.startswith("2 of 4 agree with the paper.") for note in table.notes)


def test_too_few_pairs_are_told():
    assert any("fewer than five" in n for n in tables.wilcoxon_table(table1_rows(n=4)).notes)
    assert not any("fewer than five" in n for n in tables.wilcoxon_table(table1_rows(n=5)).notes)


def test_joining_by_plant_and_by_leak():
    found = tables.joining(joining_rows())
    assert [table.head[1] for table in found] == ["plant", "leak"] * 2
    by_plant, by_leak = found[:2]
    assert "1, 4, 7, 10e-3" in by_plant.title
    labels = [(row[0].text, row[1].text, row[2].text) for row in by_plant.rows[:3]]
    assert labels == [("Nominal", "all", "150"), ("Nominal", "1", "100"), ("Nominal", "2", "200")]
    cells = dict(zip(by_plant.head, by_plant.rows[0], strict=True))
    assert cells["local, all"] == Cell(".801")
    assert cells["central, all"] == Cell(".861")
    assert cells["gain, all"] == Cell("+.050±.000", "pays", bold=True)
    assert cells["gain, own"] == Cell(".000±.000", "unclear")
    assert [row[1].text for row in by_leak.rows] == ["0.001", "0.002"] * 2
    assert "Repetitions: 3." in by_plant.notes
    assert tables.joining([]) == []


def test_joining_without_federated_models():
    rows = [row for row in joining_rows() if row["model"] == "local"]
    table = tables.joining(rows)[0]
    cells = dict(zip(table.head, table.rows[0], strict=True))
    assert (cells["federated, all"], cells["gain, all"]) == (Cell("-"), Cell("-"))
    assert cells["local, all"] == Cell(".801")


def test_scalability_from_smallest_to_largest():
    table = tables.scalability(scalability_rows())
    first, second = table.rows[:2]
    assert [cell.text for cell in first] == [
        "(a) clients G, N = 1000", "SM", "10 to 50", "2 to 10", "1.00", "12 to 12", ".930 to .930",
    ]  # fmt: skip
    assert (first[3].bold, second[3].bold) == (False, True)
    assert [row[0].text[:3] for row in table.rows] == ["(a)", "(a)", "(b)", "(b)"]


def test_the_fastest_is_of_those_at_the_largest_size():
    rows = [r for r in scalability_rows() if not (r["method"] == "Bundle" and r["x"] == "50")]
    first, second = tables.scalability(rows).rows[:2]
    assert (first[3].bold, second[3].bold) == (True, False)
    assert second[4].text == "-"


def test_rounds_by_norm_and_data():
    table = tables.rounds(rounds_rows())
    assert "1e-2, 1e-4" in table.title
    assert table.head == ("data", "norm", "ADMM", "Bundle")
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("CB", "linf"), ("UKM", "linf"), ("CB", "l2"), ("UKM", "l2"),
    ]  # fmt: skip
    assert table.rows[0][2] == Cell("40, - (1)", "rho=0.01")
    assert table.rows[0][3] == Cell("9, 9", bold=True)


def test_a_parameter_may_be_a_plain_number_or_word():
    rows = [{**row, "parameter": "0.5"} for row in rounds_rows() if row["method"] == "Bundle"]
    assert tables.rounds(rows).rows[0][2].detail == "0.5"
    rows = [{**row, "parameter": "rho=1"} for row in rows]
    assert tables.rounds(rows).rows[0][2].detail == "rho=1"


def test_growth_shows_powers_beside_the_stated_ones():
    rows = [
        {"panel": "c", "x": x, "method": m, "seconds": s, "rounds": "2", "mccr": ".9"}
        for m, seconds in (("SM", ("1.0", "4.0")), ("ADMM", ("1.0", "2.0")))
        for x, s in zip(("1000", "2000"), seconds, strict=True)
    ]
    table = tables.growth(rows)
    found = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert found == {"SM": ["2.00", "2.00", "3.50"], "ADMM": ["1.00", "1.00", "-"]}
    assert tables.growth([]).rows == ()
