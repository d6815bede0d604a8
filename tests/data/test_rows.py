"""Rows of clients from files, where labels and columns differ in kind and order."""

import csv
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm import InvalidInputError
from fdrsvm.data.rows import DataSettings, match_labels, read_readings, read_rows
from fdrsvm.errors import CorruptDataError


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return DataSettings(paths=(folder,))


def test_columns_are_found_by_name_in_the_order_of_the_first_file(tmp_path):
    settings = write(tmp_path, a="u,v,label\n1,2,x\n", b="label,v,u\ny,4,3\n")
    rows = read_rows(settings)
    assert rows.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert rows.labels.tolist() == ["x", "y"]
    assert rows.clients.tolist() == ["a", "b"]
    assert rows.of("b").X.tolist() == [[3.0, 4.0]]
    assert rows.counts() == {"a": 1, "b": 1}


def test_labels_are_numbers_if_all_are_and_else_text(tmp_path):
    rows = read_rows(write(tmp_path, a="u,label\n1,0\n", b="u,label\n1,1\n"))
    assert rows.labels.tolist() == [0, 1]
    rows = read_rows(write(tmp_path, a="u,label\n1,0\n", b="u,label\n1,bad\n"))
    assert rows.labels.tolist() == ["0", "bad"]


def test_clients_can_be_numbers_in_a_column(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("u,plant,label\n1,7,a\n2,8,b\n3,7,a\n")
    rows = read_rows(DataSettings(paths=(path,), client_column="plant"))
    assert rows.clients.tolist() == ["7", "8", "7"]
    path.write_text("u,plant,label\n1,7,a\n2,,b\n")
    with pytest.raises(InvalidInputError, match="every row must name its client; row 3"):
        read_rows(DataSettings(paths=(path,), client_column="plant"))
    with pytest.raises(InvalidInputError, match="must not be given with files of named clients"):
        read_rows(DataSettings(named={"a": path}, client_column="plant"))


def test_a_models_columns_are_picked_and_others_left(tmp_path):
    settings = write(tmp_path, a="time,v,u\nnoon,2,1\n")
    rows = read_rows(settings, features=("u", "v"), with_labels=False)
    assert rows.X.tolist() == [[1.0, 2.0]]
    assert rows.y is None


def test_labels_match_a_models_classes_as_text(rng):
    assert match_labels(np.array(["1", "-1"]), (-1, 1)).tolist() == [1, 0]
    assert match_labels(np.array([1, -1]), ("-1", "1")).tolist() == [1, 0]
    assert match_labels(np.array([1, 2]), (-1, 1)).tolist() == [1, -1]


def test_an_unknown_label_is_named_with_its_client_and_the_clients_row(tmp_path):
    rows = read_rows(write(tmp_path, north="x,label\n1,1\n2,1\n", south="x,label\n1,1\n2,2\n"))
    assert rows.codes((1, 2)).tolist() == [0, 0, 0, 1]
    with pytest.raises(InvalidInputError, match=r"row 3 of client 'south' is 2 \(1 in all\)"):
        rows.codes((-1, 1))


def test_a_contract_that_is_none_and_data_that_are_not_there_are_named(tmp_path):
    settings = write(tmp_path, north="x,label\n1,1\n")
    with pytest.raises(CorruptDataError, match=r"north\.csv: .*not the JSON of a contract"):
        read_rows(replace(settings, contract=tmp_path / "north.csv"))
    kinds = r"plants: must be a \.csv, \.tsv, \.txt or \.parquet file; it is not"
    with pytest.raises(InvalidInputError, match=kinds):
        read_rows(DataSettings(paths=(tmp_path / "plants",)))


def wide(path, n_columns):
    names = ",".join(f"c{k}" for k in range(n_columns - 1))
    line = "1.5," * (n_columns - 1)
    path.write_text(f"{names},label\n{line}a\n{line}b\n", encoding="utf-8")
    return path


def test_many_columns_are_read_in_time_and_too_many_refused(tmp_path):
    seconds = []
    for n_columns in (5_000, 20_000):
        paths = tuple(wide(tmp_path / f"{name}-{n_columns}.csv", n_columns) for name in "ab")
        begin = time.process_time()
        rows = read_rows(DataSettings(paths=paths))
        seconds.append(time.process_time() - begin)
        assert rows.X.shape == (4, n_columns - 1)
    assert seconds[1] < 10.0 * seconds[0]  # 4 times, where a search for each name made it 16
    begin = time.process_time()
    with pytest.raises(InvalidInputError, match=r"at most 100000 columns; .* has 1000000"):
        read_rows(DataSettings(paths=(wide(tmp_path / "c.csv", 1_000_000),)))
    assert time.process_time() - begin < 5.0


@pytest.mark.parametrize("columns", [{}, {"x": [], "label": []}])
def test_parquet_without_columns_or_rows_is_refused_as_a_csv_is(tmp_path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text(",".join(columns) + "\n")
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(InvalidInputError, match=f"a header line and a row; .*{name} has less"):
            read_rows(DataSettings(paths=(tmp_path / name,)))


def test_parquet_has_the_same_rules_for_columns(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    column = pyarrow.array([1.0])
    parquet.write_table(pyarrow.table([column, column], names=["x", "x"]), tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match="columns must have different names"):
        read_rows(DataSettings(paths=(tmp_path / "a.parquet",)))


def test_all_columns_of_text_are_named_with_what_to_type(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Product ID,Type,speed,label\nM14860,M,1551,0\nL47181,L,1408,1\n")
    with pytest.raises(InvalidInputError) as caught:
        read_rows(DataSettings(paths=(path,)))
    assert str(caught.value).endswith(
        "there is text in 'Product ID', 'Type'; leave out what is no reading with "
        "--ignore 'Product ID' --ignore Type"
    )
    rows = read_rows(DataSettings(paths=(path,), ignore=("Product ID", "Type")))
    assert rows.feature_names == ("speed",)
    with pytest.raises(InvalidInputError) as caught:  # what a model wants cannot be left out
        read_rows(DataSettings(paths=(path,)), features=["Type", "speed"])
    assert str(caught.value).endswith("there is text in 'Type'")


def test_columns_of_text_are_named_by_what_they_seem_to_be(tmp_path):
    path = tmp_path / "a.csv"
    lines = [
        f"M{n},2025-01-{n + 1:02} 08:00,{n + 1:02}.01.2025,{'ab'[n % 2]},{n}.5,0" for n in range(12)
    ]
    path.write_text("id,time,day,kind,speed,label\n" + "\n".join(lines) + "\n")
    with pytest.raises(InvalidInputError) as caught:
        read_rows(DataSettings(paths=(path,)))
    assert str(caught.value).endswith(
        "there is text in 'id' (all different, as names of rows are), 'time' (dates or times), "
        "'day' (dates or times), 'kind'; leave out what is no reading with "
        "--ignore id --ignore time --ignore day --ignore kind"
    )
    lines[3] = lines[3].replace("3.5", "off")  # one word among numbers is a fault of its row
    path.write_text("id,time,day,kind,speed,label\n" + "\n".join(lines) + "\n")
    settings = DataSettings(paths=(path,), ignore=("id", "time", "day", "kind"))
    with pytest.raises(InvalidInputError, match=r"column 'speed': .*; row 5 is no number"):
        read_rows(settings)


def test_parquet_has_the_rules_of_csv_for_text_dates_missing_values_and_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "x": [1.0, None, 3.0],
        "time": np.array(["2025-01-01", "2025-01-02", "2025-01-03"], dtype="datetime64[s]"),
        "label": [0, 1, 1],
        "plant": ["a", "a", "b"],
    }
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    settings = DataSettings(paths=(path,), client_column="plant")
    with pytest.raises(
        InvalidInputError, match=r"text in 'time' \(dates or times\); .*--ignore time"
    ):
        read_rows(settings)
    settings = replace(settings, ignore=("time",))
    with pytest.raises(InvalidInputError, match=r"column 'x': .*; row 3 is missing"):
        read_rows(settings)
    rows = read_rows(replace(settings, missing="drop"))
    assert rows.X.tolist() == [[1.0], [3.0]]
    assert rows.row_numbers.tolist() == [2, 4]
    assert (rows.n_dropped, rows.clients.tolist()) == ({"a": 1}, ["a", "b"])
    assert rows.of("b").n_dropped == {}
    read = read_readings(settings, features=["x"], keep=["time", "label"])
    assert read.texts == {"time": [f"2025-01-0{n} 00:00:00" for n in (1, 2, 3)], "label": [*"011"]}
    assert read.reasons == ["", "'x' is missing", ""]
    with pytest.raises(InvalidInputError, match="missing: must be one of"):
        read_rows(replace(settings, missing="guess"))


def test_files_of_one_federation_may_be_written_differently(tmp_path):
    texts = {
        "a.csv": "u,v,label\n1.5,2.5,x\n",
        "b.csv": "v;label;u\n2,5;y;1,5\n",
        "c.tsv": "label\tu\tv\nx\t1,5\t2.5\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-16" if name == "b.csv" else "utf-8")
    rows = read_rows(DataSettings(paths=(tmp_path,)))
    assert rows.X.tolist() == [[1.5, 2.5]] * 3
    assert rows.labels.tolist() == ["x", "y", "x"]


@given(st.lists(st.tuples(st.sampled_from([None, 1.5, -2.0]), st.sampled_from("ab")), min_size=1))
def test_dropping_leaves_the_rows_that_lack_nothing(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("drop") / "x.csv"
    lines = [f"{'' if value is None else value};{label};7" for value, label in cells]
    path.write_text("x;label;n\n" + "\n".join(lines) + "\n")
    settings = DataSettings(paths=(path,), missing="drop")
    kept = [n for n, (value, _) in enumerate(cells) if value is not None]
    if not kept:
        with pytest.raises(InvalidInputError, match="must have a row that lacks no value"):
            read_rows(settings)
        return
    rows = read_rows(settings)
    assert rows.X[:, 0].tolist() == [cells[n][0] for n in kept]
    assert rows.labels.tolist() == [cells[n][1] for n in kept]
    assert rows.row_numbers.tolist() == [n + 2 for n in kept]
    assert sum(rows.n_dropped.values()) == len(cells) - len(kept)


AI4I = Path(__file__).parents[3] / "shared" / "data" / "ai4i" / "ai4i2020.tsv"
NO_FEATURES = ("UDI", "Product ID", "Type", "TWF", "HDF", "PWF", "OSF", "RNF")


@pytest.mark.skipif(not AI4I.exists(), reason="AI4I 2020 is not beside this checkout")
def test_the_first_real_file_reads_alike_however_it_is_written(tmp_path):
    with AI4I.open(encoding="utf-8", newline="") as file:
        header, *cells = csv.reader(file, delimiter="\t")
    at = [k for k, name in enumerate(header) if name not in (*NO_FEATURES, "Machine failure")]
    expected = np.array([[float(row[k]) for k in at] for row in cells])
    path = tmp_path / "german.csv"
    lines = [header, *([cell.replace(".", ",") for cell in row] for row in cells)]
    path.write_text("\r\n".join(map(";".join, lines)) + "\r\n;;;\r\n", encoding="utf-8-sig")
    for place in (AI4I, path):
        settings = DataSettings(paths=(place,), label="Machine failure")
        with pytest.raises(InvalidInputError, match=r"--ignore 'Product ID' --ignore Type$"):
            read_rows(settings)
        rows = read_rows(replace(settings, ignore=NO_FEATURES))
        np.testing.assert_array_equal(rows.X, expected)
        assert rows.labels.sum() == 339
        assert rows.row_numbers.tolist() == list(range(2, 10_002))
