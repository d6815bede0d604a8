"""``fdrsvm check``: what it prints, how it ends, and that what it says to type works."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from fdrsvm.cli import main
from fdrsvm.data.contract import FeatureContract
from tests.cli.cases import CLIENTS, call, error_line, on_a_terminal, write_clients, write_csv
from tests.cli.test_safe_printing import EVIL, controls

ROOT = Path(__file__).parents[2]
AI4I = ROOT.parent / "shared" / "data" / "ai4i" / "ai4i2020.tsv"


@pytest.fixture
def plants(tmp_path):
    """Three plants, and what is wrong with two of them."""
    write_clients(tmp_path / "plants")
    return tmp_path / "plants"


def spoil(folder, rng, n=40):
    """Text and an id everywhere, a gap in one plant; what was wrong, as column and kind."""
    for k, client in enumerate(CLIENTS):
        X = rng.normal(size=(n, 3)) * [4.0, 0.5, 3.0] + [30.0, 4.0, 300.0]
        y = np.where(X[:, 0] + rng.normal(size=n) > 30.0, "healthy", "leak")
        ids = (n * k + rng.permutation(n)).tolist()
        write_csv(folder / f"{client}.csv", X, y, part=ids, shift=["early", "late"] * (n // 2))
    lines = (folder / "south.csv").read_text().splitlines()
    lines[7] = re.sub(r"^[^,]*", "", lines[7])
    (folder / "south.csv").write_text("\n".join(lines) + "\n")


def test_data_without_a_fault_end_with_0_and_what_to_type(plants, capsys):
    code, out, err = call(capsys, "check", plants)
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == ["Type next:", f"fdrsvm fit {plants}"]
    assert "0 to mend before training (stop), 0 to look at (warn)" in out


def test_all_faults_are_in_one_table_and_the_command_it_gives_trains(plants, capsys, rng, tmp_path):
    spoil(plants, rng)
    code, out, err = call(capsys, "check", plants)
    assert (code, err) == (1, "")
    table = out.split("\n\n")[0].splitlines()
    assert table[0].split() == [
        "client",
        "column",
        "row",
        *["what", "is", "wrong", "what", "to", "do"],
    ]
    serious = [line.split()[:4] for line in table if line.startswith(("stop", "warn"))]
    assert serious == [
        ["stop", "south", "flow", "8"],
        ["stop", "all", "shift", "-"],
        ["warn", "all", "part", "-"],
    ]
    contract = tmp_path / "contract.json"
    code, out, err = call(capsys, "check", plants, "--write-contract", contract)
    assert (code, err) == (1, "")
    command = out.splitlines()[-1]
    assert FeatureContract.load(contract).names == ("flow", "pressure", "temperature")
    program, *arguments = shlex.split(command)
    assert program == "fdrsvm"
    output = tmp_path / "run"
    assert main([*arguments, "--output", str(output), "--set", "epsilon=0.001"]) == 0
    capsys.readouterr()
    assert (output / "model.safetensors").exists()
    checked = [argument for argument in arguments if argument != "fit"]
    assert call(capsys, "check", *checked)[0] == 0


def test_json_has_what_the_table_has(plants, capsys, rng):
    spoil(plants, rng)
    code, out, _ = call(capsys, "check", plants, "--json")
    content = json.loads(out)
    assert code == 1
    assert content["can_train"] is False
    assert content["ignore"] == ["part", "shift"]
    assert content["command"] == f"fdrsvm fit {plants} --missing drop --ignore part --ignore shift"
    (gap,) = [one for one in content["findings"] if one["kind"] == "missing"]
    assert (gap["client"], gap["column"], gap["row"]) == ("south", "flow", 8)
    assert set(gap) == {"kind", "severity", "client", "column", "row", "what", "remedy"}


def test_a_folder_of_rubbish_is_a_table_and_no_error(tmp_path, capsys):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "b.csv").write_text("")
    code, out, err = call(capsys, "check", tmp_path)
    assert (code, err) == (1, "")
    assert sum(line.startswith("stop  ") for line in out.splitlines()) == 2


def test_a_contract_is_written_once_and_only_of_something(tmp_path, plants, capsys):
    there = tmp_path / "there.json"
    there.write_text("mine")
    line = error_line(capsys, "check", plants, "--write-contract", there)
    assert "a contract that was agreed on is not overwritten" in line
    assert there.read_text() == "mine"
    (tmp_path / "void.csv").write_text("")
    code, _, err = call(
        capsys, "check", tmp_path / "void.csv", "--write-contract", tmp_path / "c.json"
    )
    assert code == 1
    assert "no contract was written: it takes a column of readings" in err
    assert not (tmp_path / "c.json").exists()
    line = error_line(capsys, "check", plants, "--contract", there, "--write-contract", "x", code=2)
    assert "do not go together" in line


def test_names_of_other_people_are_shown_and_not_obeyed(tmp_path, capsys, rng):
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0.0, "ok", "leak")
    write_csv(tmp_path / "a.csv", X, y, **{EVIL: ["x"] * 30})
    code, out, err = call(capsys, "check", tmp_path)
    assert code == 1
    assert not controls(out + err)
    assert r"\x1b]0;owned" in out


@pytest.mark.parametrize("width", [80, 200])
def test_a_terminal_of_any_width_shows_every_word(plants, width):
    seen, _ = on_a_terminal("check", plants, is_output=True, COLUMNS=str(width), NO_COLOR="1")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    lines = plain.replace("\r", "").splitlines()
    end = lines.index("Type next:")
    assert max(map(len, lines[: end - 1])) <= width
    assert "what to do" in lines[0]
    assert ("wrong, what to do" in lines[0]) == (width == 80)
    assert "north" in plain


def test_ai4i_is_told_all_at_once_and_trained_by_what_is_said(tmp_path, capsys, monkeypatch):
    if not AI4I.exists():
        pytest.skip("AI4I is not beside this checkout")
    monkeypatch.chdir(tmp_path)
    text = AI4I.read_text(encoding="utf-8").replace("\t", ",")
    Path("ai4i.csv").write_text(text, encoding="utf-8")
    options = ("--label", "Machine failure", "--write-contract", "contract.json")
    code, out, _ = call(capsys, "check", "ai4i.csv", *options)
    assert code == 1
    command = out.splitlines()[-1]
    assert command == (
        "fdrsvm fit ai4i.csv --label 'Machine failure' --contract contract.json --ignore UDI "
        "--ignore 'Product ID' --ignore Type --ignore TWF --ignore HDF --ignore PWF --ignore OSF "
        "--ignore RNF"
    )
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    assert command in page
    quick = ("--class-weight", "balanced", "--features", "linear")  # maps take minutes
    assert main([*shlex.split(command)[1:], *quick]) == 0


def test_the_page_lists_every_kind_of_finding():
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    listed = set()
    for cell in re.findall(r"^\| ((?:`[a-z ]+`(?:, )?)+) \|", page, re.M):
        listed |= set(re.findall(r"`([a-z ]+)`", cell))
    data = ROOT / "src" / "fdrsvm" / "data"
    source = "".join(
        (data / f"{name}.py").read_text(encoding="utf-8")
        for name in ("findings", "columns", "classes", "comparing", "checking")
    )
    told = set(re.findall(r"(?:notes\.add|return say)\(\s*\"([a-z ]+)\"", source))
    told |= set(re.findall(r"return \"([a-z]+)\", \"stop\"", source))
    told |= set(re.findall(r"\(\"([a-z]+)\", cells\.", source))
    told |= set(re.findall(r"texts_of\([^()\"]*\"([a-z ]+)\"", source))
    assert listed == told
