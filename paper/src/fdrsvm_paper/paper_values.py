"""The numbers printed in the paper, to hold ours against.

Source: *FDR-SVM: A Federated Distributionally Robust SVM via a Mixture of Wasserstein Balls
Ambiguity Set*, UAI 2025. Table 1: F-1 on seven UCI sets, mean and standard deviation over 50
repetitions. Table 2: F-1 on the industrial data, over 10 repetitions. The Wilcoxon table: whether
the hypothesis "the best of SM, ADMM and ADMM-SC is no better than this baseline" was rejected at
the level 0.05.

Methods and columns are named as in the row files; the titles are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Printed(NamedTuple):
    """Mean and standard deviation over the paper's repetitions, as printed."""

    mean: float
    sd: float


PaperTable = Mapping[str, Mapping[str, Printed]]  # by method, then by column

CENTRAL: Final = "Central DR-SVM"
BASELINES: Final = ("FedSGD", "FedAvg", "FedProx", "FedDRO (KL)")
OURS: Final = ("SM", "ADMM", "ADMM-SC")  # the paper's own
PAPER_METHODS: Final = (CENTRAL, *BASELINES, *OURS)

DATA_TITLES: Final[Mapping[str, str]] = {
    "banknote": "Banknote",
    "bcw": "BCW",
    "sonar": "CB",
    "mammographic": "MM",
    "parkinsons": "Parkinson's",
    "rice": "Rice",
    "ukm": "UKM",
}
SETTING_TITLES: Final[Mapping[str, str]] = {
    "nominal": "Nominal",
    "client-imbalance": "Client imb.",
    "class-imbalance": "Class imb.",
    "both": "Both",
    "noisy-labels": "Noisy labels",
}

REPETITIONS_TABLE1: Final = 50
REPETITIONS_TABLE2: Final = 10
WILCOXON_ALPHA: Final = 0.05

# Kept in the form of print, which is easy to check against it.
_TABLE1_TEXT = """
Central DR-SVM | .950±.011 | .964±.013 | .773±.052 | .792±.017 | .904±.025 | .938±.005 | .845±.027
FedSGD         | .950±.011 | .914±.019 | .765±.045 | .624±.161 | .752±.204 | .856±.013 | .808±.019
FedAvg         | .950±.011 | .929±.016 | .788±.051 | .787±.024 | .816±.132 | .936±.006 | .847±.027
FedProx        | .950±.011 | .929±.019 | .780±.075 | .782±.052 | .735±.210 | .931±.006 | .847±.028
FedDRO (KL)    | .945±.011 | .925±.019 | .738±.036 | .783±.019 | .864±.025 | .859±.009 | .718±.001
SM             | .855±.017 | .957±.015 | .769±.054 | .797±.023 | .920±.023 | .936±.006 | .840±.031
ADMM           | .950±.011 | .967±.014 | .792±.047 | .798±.017 | .911±.021 | .938±.005 | .848±.027
ADMM-SC        | .950±.011 | .966±.014 | .765±.048 | .797±.019 | .902±.026 | .938±.005 | .846±.027
"""
_TABLE2_TEXT = """
Central DR-SVM | .939±.004 | .930±.012 | .903±.012 | .901±.017 | .908±.011
FedSGD         | .886±.008 | .887±.007 | .675±.014 | .685±.030 | .861±.009
FedAvg         | .923±.006 | .919±.010 | .866±.018 | .845±.059 | .894±.017
FedProx        | .926±.010 | .919±.011 | .862±.019 | .842±.058 | .894±.019
FedDRO (KL)    | .913±.007 | .914±.010 | .858±.014 | .835±.052 | .883±.012
SM             | .942±.006 | .930±.010 | .883±.022 | .879±.035 | .894±.015
ADMM           | .918±.010 | .910±.028 | .868±.018 | .855±.025 | .903±.011
ADMM-SC        | .817±.009 | .819±.011 | .638±.020 | .627±.028 | .806±.013
"""
_WILCOXON_TEXT = """
FedSGD      | no  | yes | yes | yes | yes | yes | yes
FedAvg      | no  | yes | no  | yes | yes | no  | no
FedProx     | no  | yes | no  | yes | yes | yes | no
FedDRO (KL) | yes | yes | yes | yes | yes | yes | yes
"""


def _lines(text: str, columns: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Printed cells by row name and column."""
    split = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return {name: dict(zip(columns, cells, strict=True)) for name, *cells in split}


def _scores(text: str, columns: Mapping[str, str]) -> PaperTable:
    return {
        method: {column: Printed(*map(float, cell.split("±"))) for column, cell in cells.items()}
        for method, cells in _lines(text, columns).items()
    }


TABLE1: Final[PaperTable] = _scores(_TABLE1_TEXT, DATA_TITLES)
TABLE2: Final[PaperTable] = _scores(_TABLE2_TEXT, SETTING_TITLES)
WILCOXON: Final[Mapping[str, Mapping[str, bool]]] = {
    baseline: {column: cell == "yes" for column, cell in cells.items()}
    for baseline, cells in _lines(_WILCOXON_TEXT, DATA_TITLES).items()
}
