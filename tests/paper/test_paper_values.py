"""The paper's numbers are all there; a few are checked digit by digit."""

import pytest

from fdrsvm_paper.paper_values import (
    BASELINES,
    DATA_TITLES,
    OURS,
    PAPER_METHODS,
    SETTING_TITLES,
    TABLE1,
    TABLE2,
    WILCOXON,
)


@pytest.mark.parametrize(("table", "titles"), [(TABLE1, DATA_TITLES), (TABLE2, SETTING_TITLES)])
def test_every_method_has_every_column(table, titles):
    assert tuple(table) == PAPER_METHODS
    for cells in table.values():
        assert list(cells) == list(titles)
        for mean, sd in cells.values():
            assert 0.6 < mean < 1.0
            assert 0.0 < sd < 0.25


@pytest.mark.parametrize(
    ("table", "method", "column", "printed"),
    [
        (TABLE1, "Central DR-SVM", "banknote", (0.950, 0.011)),
        (TABLE1, "FedSGD", "mammographic", (0.624, 0.161)),
        (TABLE1, "FedProx", "parkinsons", (0.735, 0.210)),
        (TABLE1, "FedDRO (KL)", "ukm", (0.718, 0.001)),
        (TABLE1, "SM", "sonar", (0.769, 0.054)),
        (TABLE1, "ADMM-SC", "rice", (0.938, 0.005)),
        (TABLE2, "Central DR-SVM", "noisy-labels", (0.908, 0.011)),
        (TABLE2, "FedAvg", "both", (0.845, 0.059)),
        (TABLE2, "SM", "nominal", (0.942, 0.006)),
        (TABLE2, "ADMM", "client-imbalance", (0.910, 0.028)),
        (TABLE2, "ADMM-SC", "class-imbalance", (0.638, 0.020)),
    ],
)
def test_printed_scores(table, method, column, printed):
    assert table[method][column] == printed


@pytest.mark.parametrize(
    ("table", "means", "sds"),
    [
        (TABLE1, [7500, 7551, 6170, 6160, 6804, 7332, 6599], [94, 129, 408, 332, 666, 55, 187]),
        (TABLE2, [7264, 7228, 6553, 6469, 7043], [60, 99, 137, 304, 107]),
    ],
)
def test_columns_add_up(table, means, sds):
    # In thousandths: a digit amiss anywhere shows.
    columns = list(table["SM"])
    for place, sums in ((0, means), (1, sds)):
        found = [sum(cells[column][place] for cells in table.values()) for column in columns]
        assert [round(1000 * value) for value in found] == sums


def test_the_wilcoxon_table():
    assert tuple(WILCOXON) == BASELINES
    refused = {(b, d) for b, cells in WILCOXON.items() for d, yes in cells.items() if not yes}
    assert refused == {
        ("FedSGD", "banknote"),
        ("FedAvg", "banknote"),
        ("FedAvg", "sonar"),
        ("FedAvg", "rice"),
        ("FedAvg", "ukm"),
        ("FedProx", "banknote"),
        ("FedProx", "sonar"),
        ("FedProx", "ukm"),
    }
    assert all(list(cells) == list(DATA_TITLES) for cells in WILCOXON.values())


def test_titles_and_method_groups():
    assert list(DATA_TITLES.values()) == [
        "Banknote", "BCW", "CB", "MM", "Parkinson's", "Rice", "UKM",
    ]  # fmt: skip
    assert list(SETTING_TITLES.values()) == [
        "Nominal", "Client imb.", "Class imb.", "Both", "Noisy labels",
    ]  # fmt: skip
    assert set(OURS) | set(BASELINES) < set(PAPER_METHODS)
