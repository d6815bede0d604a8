"""Rows that must not change unseen: every number but the seconds, digit by digit.

To renew them after a change that is meant: ``python -m tests.paper.test_golden``.
"""

from pathlib import Path

import pytest

from fdrsvm_paper.industrial_study import IndustrialStudy, JoiningStudy
from fdrsvm_paper.rows import RowFile, read_rows
from fdrsvm_paper.sensitivity_study import SensitivityStudy
from fdrsvm_paper.study import run_study
from fdrsvm_paper.uci_study import UciStudy

GOLDEN = Path(__file__).parent / "golden"
ONE = {"repetitions": 1, "settings": ("noisy-labels",)}
STUDIES = {
    # Breast cancer is the one set that comes with scikit-learn.
    "table1-paper-code": UciStudy("paper-code", 1, names=("bcw",)),
    "table1-text": UciStudy("text", 1, names=("bcw",)),
    "joining-text": JoiningStudy("text", **ONE),
    "sensitivity-paper-code": SensitivityStudy("paper-code", severities=("labelling",), **ONE),
    "table2-paper-code": IndustrialStudy("paper-code", severities=("labelling",), **ONE),
}
SLOW = ("table2-paper-code",)
CASES = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in STUDIES]


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_on_file(name, tmp_path, monkeypatch):
    monkeypatch.delenv("FDRSVM_DATA", raising=False)
    found = without_seconds(run_study(STUDIES[name], tmp_path, 1))
    expected = without_seconds(read_rows(GOLDEN / f"{name}.csv"))
    assert len(found) == len(expected) > 0
    for row, kept in zip(found, expected, strict=True):
        assert row.keys() == kept.keys()
        for field in row:
            if field == "gap" and row[field]:
                # Where below the tolerance a run ends hangs on last bits. Models keep theirs on
                # every processor, but what they are trained on may not: see docs/datasets.md.
                assert float(row[field]) == pytest.approx(float(kept[field]), rel=0.1)
            elif field in ("f1", "cv_f1", "accuracy", "mccr", "f1_all", "f1_own") and row[field]:
                # So two models within the tolerance may part on a few records near the boundary:
                # .9271 and .9261 have been seen, one record of 1000.
                assert float(row[field]) == pytest.approx(float(kept[field]), abs=0.003), row
            else:
                assert row[field] == kept[field], (field, row)


if __name__ == "__main__":
    for name, study in STUDIES.items():
        file = RowFile(GOLDEN / f"{name}.csv", study.columns)
        file.replace([row for task in study.tasks() for row in study.run(task)])
