"""What is in the seven UCI sets: files, columns, classes, counts, checksums of the content."""

from __future__ import annotations

from dataclasses import dataclass


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


# fmt: off
_CELL_MEASURES = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
    "concave_points", "symmetry", "fractal_dimension",
)
_VOICE_MEASURES = (
    "MDVP:Fo(Hz)", "MDVP:Fhi(Hz)", "MDVP:Flo(Hz)", "MDVP:Jitter(%)", "MDVP:Jitter(Abs)",
    "MDVP:RAP", "MDVP:PPQ", "Jitter:DDP", "MDVP:Shimmer", "MDVP:Shimmer(dB)", "Shimmer:APQ3",
    "Shimmer:APQ5", "MDVP:APQ", "Shimmer:DDA", "NHR", "HNR", "RPDE", "DFA", "spread1", "spread2",
    "D2", "PPE",
)
_GRAIN_MEASURES = (
    "Area", "Perimeter", "Major_Axis_Length", "Minor_Axis_Length", "Eccentricity", "Convex_Area",
    "Extent",
)
# fmt: on

SETS = {
    item.name: item
    for item in (
        UciSet(
            name="banknote",
            title="Banknote Authentication",
            uci_id=267,
            file="banknote.csv",
            target="class",
            negative={"0": 762},
            positive={"1": 610},
            features=("variance", "skewness", "curtosis", "entropy"),
            sha256="64353ea92bd5ec98c0bcc0ad136299ae51b623974d9c8ee453aa54a48bb435e7",
        ),
        UciSet(
            name="bcw",
            title="Breast Cancer Wisconsin (Diagnostic)",
            uci_id=17,
            file="breast_cancer_wdbc.csv",
            target="Diagnosis",
            negative={"M": 212},
            positive={"B": 357},
            features=tuple(
                f"{kind}_{what}" if kind != "error" else f"{what}_error"
                for kind in ("mean", "error", "worst")
                for what in _CELL_MEASURES
            ),
            sha256="ba2af2606588187724550c4bda06fb12166e65e340f620c424091cdb111f1a93",
            note="+1 is benign.",
        ),
        UciSet(
            name="sonar",
            title="Connectionist Bench (Sonar, Mines vs. Rocks)",
            uci_id=151,
            file="sonar.csv",
            target="class",
            negative={"R": 97},
            positive={"M": 111},
            features=tuple(f"band_{k}" for k in range(1, 61)),
            sha256="4f24cc0dafa85057b49b42d00b6dc1305f9a8f63f161b42f05cfcc63800d123f",
            note="+1 is a mine.",
        ),
        UciSet(
            name="mammographic",
            title="Mammographic Mass",
            uci_id=161,
            file="mammographic_mass.csv",
            target="Severity",
            negative={"0": 516},
            positive={"1": 445},
            features=("BI-RADS", "Age", "Shape", "Margin", "Density"),
            sha256="f25c88264ec167078f444de6a0f1292a363e0d019bc27a3e399522145a576bec",
            may_miss=True,
            note="131 of the 961 rows have a missing cell.",
        ),
        UciSet(
            name="parkinsons",
            title="Parkinsons",
            uci_id=174,
            file="parkinsons.csv",
            target="status",
            negative={"0": 48},
            positive={"1": 147},
            features=_VOICE_MEASURES,
            sha256="4d5ab5dbcca7b9396d538415d798e2056ff4a6701b7a8f18ac0fe40a5d1ccc5c",
            recordings="name",
            recordings_file="parkinsons_names.csv",
            recordings_sha256="697883e35ccc35d4a08a4e684965bb89e3b0fc357438ca51bf17eb9a4e70ad0a",
            note="About six recordings per person; `groups` says whose.",
        ),
        UciSet(
            name="rice",
            title="Rice (Cammeo and Osmancik)",
            uci_id=545,
            file="rice_cammeo_osmancik.csv",
            target="Class",
            negative={"Cammeo": 1630},
            positive={"Osmancik": 2180},
            features=_GRAIN_MEASURES,
            sha256="5d14afd561498be6862210d2a7942689737c52ed77b9ad74ebdc8beb63eed466",
            single=True,
        ),
        UciSet(
            name="ukm",
            title="User Knowledge Modeling",
            uci_id=257,
            file="user_knowledge.csv",
            target="UNS",
            negative={"Very Low": 50, "Low": 129},
            positive={"Middle": 122, "High": 102},
            features=("STG", "SCG", "STR", "LPR", "PEG"),
            sha256="d6523ebe3a72ca240a367884dfaa1f2d7b413b8b2eadc39b86f6e3a44c1e98d6",
            note="+1 is middle or high. UCI spells one class both `very_low` and `Very Low`.",
        ),
    )
}
