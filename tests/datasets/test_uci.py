"""The seven data sets as they come from a folder and from scikit-learn."""

import shutil

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from fdrsvm import FDRSVMError, InvalidInputError
from fdrsvm.datasets import UCI_NAMES, DataError, DataWarning, load_uci
from fdrsvm.datasets._uci_sets import SETS
from fdrsvm.datasets.uci import _from_folder, content_sha256

from .uci_folder import FOLDER, needs_folder

# Rows, features, rows of class +1, as the paper uses them.
SHAPES = {
    "banknote": (1372, 4, 610),
    "bcw": (569, 30, 357),
    "sonar": (208, 60, 111),
    "mammographic": (830, 5, 403),
    "parkinsons": (195, 22, 147),
    "rice": (3810, 7, 2180),
    "ukm": (403, 5, 224),
}


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("FDRSVM_DATA", raising=False)


@needs_folder
@pytest.mark.parametrize("name", UCI_NAMES)
def test_shape_and_class_counts_are_those_of_the_paper(name):
    data = load_uci(name, FOLDER)
    n_rows, n_features, n_positive = SHAPES[name]
    assert data.X.shape == (n_rows, n_features)
    assert data.X.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert set(data.y) == {-1.0, 1.0}
    assert (data.y == 1.0).sum() == n_positive
    assert len(data.feature_names) == n_features
    assert set(data.classes.values()) == {-1, 1}
    assert str(FOLDER) in data.source
    assert "UCI" in data.DESCR


@needs_folder
@pytest.mark.parametrize("name", UCI_NAMES)
def test_the_content_has_the_recorded_checksum(name):
    assert _from_folder(SETS[name], FOLDER).fault(SETS[name]) is None


@needs_folder
def test_the_positive_class_is_the_one_of_the_papers_f1():
    targets = {name: load_uci(name, FOLDER).target_names[1] for name in UCI_NAMES}
    assert targets == {
        "banknote": "1",
        "bcw": "B",
        "sonar": "M",
        "mammographic": "1",
        "parkinsons": "1",
        "rice": "Osmancik",
        "ukm": "Middle + High",
    }


@needs_folder
def test_incomplete_rows_are_dropped_or_kept_on_request():
    kept = load_uci("mammographic", FOLDER, missing="keep")
    assert kept.X.shape == (961, 5)
    complete = ~np.isnan(kept.X).any(axis=1)
    dropped = load_uci("mammographic", FOLDER)
    np.testing.assert_array_equal(dropped.X, kept.X[complete])
    np.testing.assert_array_equal(dropped.y, kept.y[complete])


@needs_folder
def test_the_authors_leave_out_the_first_row_of_ukm_alone():
    whole, theirs = load_uci("ukm", FOLDER), load_uci("ukm", FOLDER, rows="authors")
    np.testing.assert_array_equal(theirs.X, whole.X[1:])
    assert load_uci("sonar", FOLDER, rows="authors").X.shape == (208, 60)


@needs_folder
def test_parkinsons_rows_are_grouped_by_person():
    data = load_uci("parkinsons", FOLDER)
    persons, counts = np.unique(data.groups, return_counts=True)
    assert len(persons) == 32
    assert set(counts) == {6, 7}
    for person in persons:  # a person is ill or well in all recordings
        assert len(set(data.y[data.groups == person])) == 1
    assert load_uci("sonar", FOLDER).groups is None


@needs_folder
@pytest.mark.parametrize("name", ["rice", "mammographic", "ukm"])
def test_line_ends_trailing_zeros_and_a_byte_order_mark_do_not_matter(name, tmp_path):
    item = SETS[name]
    text = (FOLDER / item.file).read_text()
    head, *rows = text.splitlines()
    (tmp_path / item.file).write_bytes(
        b"\xef\xbb\xbf" + "\r\n".join([head, *rows, "", ""]).encode()
    )
    np.testing.assert_array_equal(load_uci(name, tmp_path).X, load_uci(name, FOLDER).X)


@needs_folder
def test_rice_is_the_same_however_many_digits_are_printed(tmp_path):
    head, *rows = (FOLDER / "rice_cammeo_osmancik.csv").read_text().splitlines()
    short = [
        ",".join([*(str(np.float32(cell)) for cell in row.split(",")[:-1]), row.split(",")[-1]])
        for row in rows
    ]
    (tmp_path / "rice_cammeo_osmancik.csv").write_text("\n".join([head, *short]))
    np.testing.assert_array_equal(load_uci("rice", tmp_path).X, load_uci("rice", FOLDER).X)


@needs_folder
def test_other_content_of_the_right_shape_is_used_with_a_warning(tmp_path):
    text = (FOLDER / "banknote.csv").read_text().replace("3.6216", "3.6217", 1)
    (tmp_path / "banknote.csv").write_text(text)
    with pytest.warns(DataWarning, match=r"banknote\.csv has the shape .* not its content"):
        data = load_uci("banknote", tmp_path)
    assert data.X[0, 0] == 3.6217


@needs_folder
def test_the_environment_names_the_folder_and_the_argument_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("FDRSVM_DATA", str(tmp_path))
    shutil.copy(FOLDER / "sonar.csv", tmp_path)
    assert str(tmp_path) in load_uci("sonar").source
    assert str(FOLDER) in load_uci("sonar", FOLDER).source


def test_breast_cancer_needs_neither_folder_nor_network(no_folder):
    data = load_uci("bcw", download=False)
    theirs = load_breast_cancer()
    np.testing.assert_array_equal(data.X, theirs.data)
    np.testing.assert_array_equal(data.y > 0, theirs.target == 1)
    assert "scikit-learn" in data.source
    classes = ["B" if label > 0 else "M" for label in data.y]
    assert content_sha256(data.X, classes) == SETS["bcw"].sha256


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInputError) as caught:
        load_uci("iris")
    for name in UCI_NAMES:
        assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"name": None}, "name"),
        ({"name": "bcw", "missing": "zero"}, "missing"),
        ({"name": "bcw", "rows": 3}, "rows"),
        ({"name": "bcw", "data_home": "no/such/folder"}, "data_home"),
    ],
)
def test_bad_arguments_are_named(arguments, argument):
    with pytest.raises(InvalidInputError) as caught:
        load_uci(**arguments)
    assert caught.value.argument == argument


def test_an_environment_variable_that_names_no_folder_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("FDRSVM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInputError, match="FDRSVM_DATA: must be a folder"):
        load_uci("banknote")


# ------------------------------------------------------------------------------------ faulty files


def banknote_lines(n_zero=762, n_one=610):
    rows = [f"{k / 8},{k % 7},0.5,-1e-3,{int(k >= n_zero)}" for k in range(n_zero + n_one)]
    return ["variance,skewness,curtosis,entropy,label", *rows]


def with_line(number, text):
    lines = banknote_lines()
    lines[number - 1] = text
    return lines


FAULTS = {
    "no label column": (
        with_line(1, "a,b,c,d,class"),
        1,
        "label",
        "one column 'label'",
        "it has 0",
    ),
    "two label columns": (
        with_line(1, "a,b,c,Label,label"),
        1,
        "label",
        "one column 'label'",
        "it has 2",
    ),
    "a short row": (with_line(5, "1,2,3,0"), 5, "label", "5 cells", "has 4"),
    "a long row": (with_line(5, "1,2,3,4,0,6"), 5, None, "5 cells", "has 6"),
    "text in a cell": (with_line(7, "1,2,x,4,0"), 7, "curtosis", "finite number", "'x'"),
    "an empty cell": (with_line(7, "1,,3,4,0"), 7, "skewness", "finite number", "empty"),
    "a question mark": (with_line(7, "1,?,3,4,0"), 7, "skewness", "finite number", "'?'"),
    "infinity": (with_line(9, "1,2,3,inf,0"), 9, "entropy", "finite number", "'inf'"),
    "a grouped number": (with_line(9, "1,2,3,1_000,0"), 9, "entropy", "finite number", "1_000"),
    "an unknown class": (with_line(4, "1,2,3,4,2"), 4, "label", "one of '0', '1'", "'2'"),
    "no class": (with_line(4, "1,2,3,4,"), 4, "label", "one of '0', '1'", "''"),
    "a row too few": (banknote_lines(n_zero=761), 1372, None, "1372 rows", "1371"),
    "a row too many": (banknote_lines(n_one=611), 1374, None, "1372 rows", "1373"),
    "classes out of balance": (banknote_lines(761, 611), None, "label", "762 rows", "761"),
    "only a header": (banknote_lines()[:1], 1, None, "1372 rows", "has 0"),
    "a feature too many": (
        [f"{line},1" if k else f"{line},more" for k, line in enumerate(banknote_lines())],
        1,
        None,
        "4 columns",
        "it has 5",
    ),
    "an open quote": (with_line(1373, '1,2,3,"4,1'), 1373, None, "CSV", "end of data"),
    "nothing": ([], 1, None, "header", "empty"),
}


@pytest.mark.parametrize(("lines", "line", "column", "rule", "found"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_file_is_named_with_line_and_column(lines, line, column, rule, found, tmp_path):
    path = tmp_path / "banknote.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        load_uci("banknote", tmp_path)
    error = caught.value
    assert isinstance(error, FDRSVMError)
    assert isinstance(error, ValueError)
    assert (error.file, error.line, error.column) == (str(path), line, column)
    assert rule in error.rule
    assert found in error.found
    assert str(path) in str(error)
    if line is not None:
        assert f"line {line}" in str(error)


def test_bytes_that_are_not_text_are_named_by_line(tmp_path):
    lines = "\n".join(banknote_lines()).encode().split(b"\n")
    lines[2] += b"\xff"
    (tmp_path / "banknote.csv").write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match="line 3: must be UTF-8"):
        load_uci("banknote", tmp_path)


def test_names_that_do_not_fit_the_rows_are_an_error(tmp_path):
    item = SETS["parkinsons"]
    rows = [",".join(["1"] * 22 + [str(int(k < 147))]) for k in range(195)]
    (tmp_path / item.file).write_text("\n".join([",".join([*item.features, "label"]), *rows]))
    (tmp_path / "parkinsons_names.csv").write_text("name\nphon_R01_S01_1\n")
    with pytest.raises(DataError, match=r"parkinsons_names\.csv, line 2: .* 195 rows"):
        load_uci("parkinsons", tmp_path)
