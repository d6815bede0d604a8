"""Rows of clients from files, where labels and columns differ in kind and order."""

import time
from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.data.rows import DataSettings, match_labels, read_rows
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
    with pytest.raises(
        InvalidInputError, match=r"plants: must be a \.csv, \.tsv, \.txt or \.parquet file; it is not"
    ):
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
