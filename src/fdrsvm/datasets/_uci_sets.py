"""What is in the seven UCI sets: files, columns, classes, counts, checksums of the content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class UciSet:
    """One data set: its file in a folder, its column names at UCI, and what must be in it."""

    name: str
    title: str
    uci_id: int
    file: str
    target: str
    negative: dict[str, int]  # rows of each class that becomes -1
    positive: dict[str, int]  # rows of each class that becomes +1, the class of F-1
    features: tuple[str, ...]
    sha256: str
    recordings: str | None = None  # column of the rows' own names
    recordings_file: str | None = None
    recordings_sha256: str | None = None
    may_miss: bool = False
    single: bool = False  # numbers were stored in single precision
    note: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each class."""
        return self.negative | self.positive

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return sum(self.counts.values())


# Number at UCI, file in a folder, column of the classes, rows of each class that becomes -1 or +1.
_TABLE: dict[str, tuple[int, str, str, dict[str, int], dict[str, int]]] = {
    "banknote": (267, "banknote.csv", "class", {"0": 762}, {"1": 610}),
    "bcw": (17, "breast_cancer_wdbc.csv", "Diagnosis", {"M": 212}, {"B": 357}),
    "sonar": (151, "sonar.csv", "class", {"R": 97}, {"M": 111}),
    "mammographic": (161, "mammographic_mass.csv", "Severity", {"0": 516}, {"1": 445}),
    "parkinsons": (174, "parkinsons.csv", "status", {"0": 48}, {"1": 147}),
    "rice": (545, "rice_cammeo_osmancik.csv", "Class", {"Cammeo": 1630}, {"Osmancik": 2180}),
    "ukm": (
        257,
        "user_knowledge.csv",
        "UNS",
        {"Very Low": 50, "Low": 129},
        {"Middle": 122, "High": 102},
    ),
}
_TITLES = {
    "banknote": "Banknote Authentication",
    "bcw": "Breast Cancer Wisconsin (Diagnostic)",
    "sonar": "Connectionist Bench (Sonar, Mines vs. Rocks)",
    "mammographic": "Mammographic Mass",
    "parkinsons": "Parkinsons",
    "rice": "Rice (Cammeo and Osmancik)",
    "ukm": "User Knowledge Modeling",
}
# fmt: off
_CELL_MEASURES = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
    "concave_points", "symmetry", "fractal_dimension",
)
_FEATURES = {
    "banknote": ("variance", "skewness", "curtosis", "entropy"),
    "bcw": tuple(
        f"{what}_error" if kind == "error" else f"{kind}_{what}"
        for kind in ("mean", "error", "worst")
        for what in _CELL_MEASURES
    ),
    "sonar": tuple(f"band_{k}" for k in range(1, 61)),
    "mammographic": ("BI-RADS", "Age", "Shape", "Margin", "Density"),
    "parkinsons": (
        "MDVP:Fo(Hz)", "MDVP:Fhi(Hz)", "MDVP:Flo(Hz)", "MDVP:Jitter(%)", "MDVP:Jitter(Abs)",
        "MDVP:RAP", "MDVP:PPQ", "Jitter:DDP", "MDVP:Shimmer", "MDVP:Shimmer(dB)", "Shimmer:APQ3",
        "Shimmer:APQ5", "MDVP:APQ", "Shimmer:DDA", "NHR", "HNR", "RPDE", "DFA", "spread1",
        "spread2", "D2", "PPE",
    ),
    "rice": (
        "Area", "Perimeter", "Major_Axis_Length", "Minor_Axis_Length", "Eccentricity",
        "Convex_Area", "Extent",
    ),
    "ukm": ("STG", "SCG", "STR", "LPR", "PEG"),
}
# fmt: on
_SHA256 = {
    "banknote": "64353ea92bd5ec98c0bcc0ad136299ae51b623974d9c8ee453aa54a48bb435e7",
    "bcw": "ba2af2606588187724550c4bda06fb12166e65e340f620c424091cdb111f1a93",
    "sonar": "4f24cc0dafa85057b49b42d00b6dc1305f9a8f63f161b42f05cfcc63800d123f",
    "mammographic": "f25c88264ec167078f444de6a0f1292a363e0d019bc27a3e399522145a576bec",
    "parkinsons": "4d5ab5dbcca7b9396d538415d798e2056ff4a6701b7a8f18ac0fe40a5d1ccc5c",
    "rice": "5d14afd561498be6862210d2a7942689737c52ed77b9ad74ebdc8beb63eed466",
    "ukm": "d6523ebe3a72ca240a367884dfaa1f2d7b413b8b2eadc39b86f6e3a44c1e98d6",
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "bcw": {"note": "+1 is benign."},
    "sonar": {"note": "+1 is a mine."},
    "mammographic": {"may_miss": True, "note": "131 of the 961 rows have a missing cell."},
    "parkinsons": {
        "recordings": "name",
        "recordings_file": "parkinsons_names.csv",
        "recordings_sha256": "697883e35ccc35d4a08a4e684965bb89e3b0fc357438ca51bf17eb9a4e70ad0a",
        "note": "About six recordings per person; `groups` says whose.",
    },
    "rice": {"single": True},
    "ukm": {"note": "+1 is middle or high. UCI spells one class both `very_low` and `Very Low`."},
}

SETS = {
    name: UciSet(
        name, _TITLES[name], *facts, _FEATURES[name], _SHA256[name], **_OPTIONS.get(name, {})
    )
    for name, facts in _TABLE.items()
}
