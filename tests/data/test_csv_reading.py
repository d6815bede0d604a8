"""CSV as it comes: what can be read in one way is read, bit for bit, and the rest is refused."""

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fdrsvm import InvalidInputError
from fdrsvm.data.csv_reading import SEPARATORS
from fdrsvm.data.rows import DataSettings, read_rows
from fdrsvm.data.tables import data_files, is_missing, parse_table, read_numbers, read_table

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le-marked")


def numbers(table, name):
    values, broken = read_numbers(table[name])
    assert not broken.any()
    return values


def parse(text):
    return parse_table(text.encode(), "a.csv")


def written(rows, separator, quoting, line_end, encoding):
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator=line_end).writerows(
        rows
    )
    if encoding == "utf-16-le-marked":
        return ("\ufeff" + stream.getvalue()).encode("utf-16-le")
    return stream.getvalue().encode(encoding)


def could_be_thousands(cell):
    """Independent of the reader's own rule: dropping the only mark leaves a number in groups."""
    whole, mark, rest = cell.lstrip("-").replace(",", ".").partition(".")
    return bool(mark) and f"{int(whole + rest):,}" == f"{whole},{rest}" if rest.isdigit() else False


@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(FLOATS, min_size=width, max_size=width), min_size=1, max_size=6
        )
    ),
    separator=st.sampled_from(SEPARATORS),
    decimal=st.sampled_from(".,"),
    quoting=st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    line_end=st.sampled_from(("\n", "\r\n")),
    encoding=st.sampled_from(ENCODINGS),
)
def test_a_table_of_floats_reads_back_bit_for_bit_or_is_refused(
    rows, separator, decimal, quoting, line_end, encoding
):
    names = [f"c{k}" for k in range(len(rows[0]))]
    cells = [[repr(value).replace(".", decimal) for value in row] for row in rows]
    content = written([names, *cells], separator, quoting, line_end, encoding)
    # Nothing but the header says that 0,5 is one cell, where no separator is in sight.
    has_bare_comma = decimal == "," != separator and quoting == csv.QUOTE_MINIMAL
    if len(names) == 1 and has_bare_comma and any("," in row[0] for row in cells):
        with pytest.raises(InvalidInputError, match="separate the cells by semicolons"):
            parse_table(content, "a.csv")
        return
    table = parse_table(content, "a.csv")
    for k, name in enumerate(names):
        if name in table.notes:
            marked = [row[k] for row in cells if decimal in row[k]]
            assert marked  # a column without marks is never in doubt
            assert all(map(could_be_thousands, marked))
            assert (separator, decimal) != (",", ".")
        else:
            expected = np.array([row[k] for row in rows])
            assert numbers(table, name).tobytes() == expected.tobytes()
    assert table.written.separator == (separator if len(names) > 1 else ",")
    assert table.row_numbers.tolist() == list(range(2, len(rows) + 2))


@given(
    st.lists(FLOATS, min_size=1, max_size=5),
    st.sampled_from(SEPARATORS),
    st.sampled_from(".,"),
)
def test_one_number_that_is_not_in_doubt_settles_the_file(values, separator, decimal):
    rows = [["x", "y"], *([repr(value), "0.5"] for value in values)]
    cells = [[cell.replace(".", decimal) for cell in row] for row in rows]
    table = parse_table(written(cells, separator, csv.QUOTE_ALL, "\n", "utf-8"), "a.csv")
    assert table.notes == {}
    assert numbers(table, "x").tobytes() == np.array(values).tobytes()
    assert table.written.decimal == decimal


@given(
    st.lists(st.none() | FLOATS, min_size=1, max_size=6),
    st.sampled_from(SEPARATORS),
    st.sampled_from(".,"),
    st.sampled_from(("", "?", "NaN", "NA", "#N/A", " ")),
    st.booleans(),
)
def test_missing_values_are_missing_and_change_no_other(values, separator, decimal, gap, has_text):
    cells = [gap if value is None else repr(value).replace(".", decimal) for value in values]
    rows = [["x", "y"], *([cell, f"0{decimal}5"] for cell in cells)]
    if has_text:
        rows.append(["off", "1"])
    table = parse_table(written(rows, separator, csv.QUOTE_ALL, "\n", "utf-8"), "a.csv")
    found, broken = read_numbers(table["x"])
    expected = np.array([np.nan if value is None else value for value in values])
    assert found[: len(values)].tobytes() == expected.tobytes()
    assert broken.tolist() == [value is None for value in values] + [True] * has_text
    missing = [is_missing(item) for item in table["x"]]
    assert missing == [value is None for value in values] + [False] * has_text


@pytest.mark.parametrize(
    ("text", "separator", "decimal", "x"),
    [
        ("x,y\n1,2\n", ",", "", [1.0]),
        ("x,y\n1.5,2\n", ",", ".", [1.5]),
        ("x,y\n1.234,2\n", ",", ".", [1.234]),  # who writes commas between cells has points
        ('x,y\n"1,5",2\n', ",", ",", [1.5]),
        ("x;y\n1,5;2\n", ";", ",", [1.5]),
        ("x;y\n1.5;2\n", ";", ".", [1.5]),
        ("x\ty\n1,5\t2\n", "\t", ",", [1.5]),
        ("x\ty\n1.5\t2\n", "\t", ".", [1.5]),
        ("x;y\n1,234;0,5\n", ";", ",", [1.234]),  # y settles it
        ("x;y\n1.234;0.5\n", ";", ".", [1.234]),
        ("x;y\n0,123;2\n", ";", ",", [0.123]),  # no thousands begin with 0
        ("x;y\n1234,567;2\n", ";", ",", [1234.567]),
        ("x;y\n-1,5e-3;2\n", ";", ",", [-0.0015]),
        ("x;y\n,5;2\n", ";", ",", [0.5]),
        ("x;y\n1,5;0.5\n", ";", ",.", [1.5]),  # each column is clear
        ("sep=;\nx;y\n1,5;2\n", ";", ",", [1.5]),
        ("x, l/min;y\n1,5;2\n", ";", ",", None),
        ("x, l/min;y, bar\n1,5;2,5\n", ";", ",", None),  # numbers may hold commas
    ],
)
def test_separator_and_decimal_mark_are_recognised(text, separator, decimal, x):
    table = parse(text)
    assert (table.written.separator, table.written.decimal) == (separator, decimal)
    assert table.notes == {}
    if x is not None:
        assert numbers(table, "x").tolist() == x


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1.5", "1,5"], "others a decimal comma"),
        (["1.234", "1,5"], "others a decimal comma"),  # 1234 if the rest is right
        (["1.234", "2,345"], "others a decimal comma"),
        (["1.234,5", "0,5"], "marks between thousands"),
        (["1,234.5", "0.5"], "marks between thousands"),
        (["1.234.567", "950"], "marks between thousands"),
        (["1.234", "950"], "nothing in the file says which"),
        (["1,234", "950"], "nothing in the file says which"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_named_and_never_read(tmp_path, cells, words):
    path = tmp_path / "a.csv"
    path.write_text("x;n;label\n" + "".join(f"{cell};1;a\n" for cell in cells))
    with pytest.raises(InvalidInputError) as caught:
        read_rows(DataSettings(paths=(path,)))
    assert re.search(r"column 'x': .*; row 2 is no number \(\d in all\): ", str(caught.value))
    assert words in str(caught.value)
    # Only what has no mark is a number.
    values, broken = read_numbers(read_table(path)["x"])
    assert values[~broken].tolist() == [float(cell) for cell in cells if cell.isdigit()]
    assert read_rows(DataSettings(paths=(path,), ignore=("x",))).X.tolist() == [[1.0], [1.0]]


def test_thousands_in_one_column_put_another_in_doubt():
    """1.234 is 1234 in a file with decimal commas, and 1.234 in one with decimal points."""
    for other, is_clear in (("0,5", False), ("0.5", True), ("1.234,5", False), ("1,234.5", True)):
        table = parse(f"x;y\n1.234;{other}\n")
        assert ("x" not in table.notes) == is_clear
        table = parse(f'x,y\n"1,234","{other}"\n')
        assert ("x" not in table.notes) == (other in ("0,5", "1.234,5"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,label\n1,5,a\n", "row 2 has 3; if commas are its decimal marks, separate the cells by"),
        ("x;label\n1;a\n\n1;2;a\n", "row 4 has 3"),
        ("x label\n1 a\n1,5 b\n", "row 3 has 2; is it separated by spaces?"),
        ("x;a,b\n1;2,x\n", "commas or semicolons could; quote the names"),
        ('x,label\n1,"a\n2,b\n', "it is broken after row 1; is a quote missing there?"),
        ('x,label\n1,a\n2,"b"c\n', "it is broken after row 2"),
        ("", "must have a header line and a row"),
        ("\n;;\n , \n", "must have a header line and a row"),
        ("x;label;\n1;a;\n", "3 has none"),
    ],
)
def test_a_broken_table_is_refused_with_the_row_of_a_spreadsheet(text, words):
    with pytest.raises(InvalidInputError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_rows_are_counted_as_a_spreadsheet_does():
    text = 'x;label\r\n1;a\r\n\r\n2;"two\r\nlines"\r\n;\r\n3;b\r\n'
    assert parse(text).row_numbers.tolist() == [2, 4, 6]
    assert parse("sep=;\nx;y\n1;2\n").row_numbers.tolist() == [2]  # not shown, and not counted
    assert parse("\n\nx;y\n1;2\n").row_numbers.tolist() == [4]
    assert parse("x\ty\r1\t2\r3\t4\r").row_numbers.tolist() == [2, 3]


def test_other_encodings_are_read_where_they_are_marked_and_else_refused():
    text = "x in °C;y\n1,5;2\n"
    for mark in ENCODINGS[1:3]:
        table = parse_table(text.encode(mark), "a.csv")
        assert table.columns == ["x in °C", "y"]
        assert table.written.encoding == mark.removesuffix("-sig")
    for encoding in ("latin-1", "cp1252"):
        with pytest.raises(InvalidInputError) as caught:
            parse_table(text.encode(encoding), "a.csv")
        assert "byte 5 is none, in line 1; save it as 'CSV UTF-8'" in str(caught.value)
    with pytest.raises(InvalidInputError, match="the character 0, as other encodings do; save it"):
        parse_table("x;y\n1,5;2\n".encode("utf-16-le"), "a.csv")


def test_a_text_is_data_if_it_begins_as_a_table(tmp_path):
    texts = {
        "README.txt": "Pump data, collected 2025\nby the team\n",
        "notes.txt": "One line\n",
        "north.txt": "x;label\n1,5;a\n",
        "south.tsv": "x\tlabel\n1.5\ta\n",
        "west.csv": "x,label\n1.5,a\n",
        "east.txt": "sep=;\nx;label\n1,5;b\n",
        "run.toml": "a = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert [path.stem for path in data_files(tmp_path)] == ["east", "north", "south", "west"]
    rows = read_rows(DataSettings(paths=(tmp_path,)))
    assert rows.X.tolist() == [[1.5]] * 4
    assert rows.clients.tolist() == ["east", "north", "south", "west"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_is_read_or_refused_in_our_own_words(text):
    try:
        table = parse_table(text.encode(), "a.csv")
    except InvalidInputError:
        return
    assert all(len(table[name]) == table.n_rows for name in table.columns)


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(SEPARATORS),
)
def test_texts_are_kept_as_they_are_written(cells, separator):
    assume(any(cell.strip() for cell in cells))
    names = [f"c{k}" for k in range(len(cells) + 1)]
    content = written([names, [*cells, "1"]], separator, csv.QUOTE_ALL, "\n", "utf-8")
    table = parse_table(content, "a.csv", texts=names)
    shown = [cell.strip() for cell in cells]
    assume(not any(cell.startswith("'") for cell in shown))  # see core/texts.py
    found = [table.texts[name][0] for name in names[:-1]]
    assert [re.sub(r"([;\t\r\n])'", r"\1", cell) for cell in found] == [
        re.sub(r"([;\t\r\n])'", r"\1", cell) for cell in shown
    ]
