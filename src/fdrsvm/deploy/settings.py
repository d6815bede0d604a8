"""All settings of a run, as the server reads them from Flower's run-config, and checks them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from fdrsvm.core.arrays import check_choice, check_count, check_non_negative, check_positive
from fdrsvm.data.contract import FeatureContract, read_contract
from fdrsvm.data.training_data import auto_radius
from fdrsvm.errors import InvalidInputError
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.estimators.fedsvc import FedSVC
from fdrsvm.federated.joining import Task
from fdrsvm.federated.limits import Limits

_BASELINES = ("fedsgd", "fedavg", "fedprox", "feddro")
_CHOICES = {
    "support": ("none", "unit-box", "contract"),
    "on-fault": ("stop", "drop"),
    "client-weights": ("equal", "samples"),
}
_COUNTS = ("leave-out-after", "n-clients", "quorum")
_MAY_BE_AUTO = ("epsilon", "tau", "penalty")
# Settings that an estimator, or a task, has under the same name.
_SHARED = ("max_rounds", "tol", "client_weights", "fit_intercept")
_OF_BASELINES = (
    *("learning_rate", "penalty", "n_epochs", "batch_fraction", "prox_weight", "temperature"),
    *_SHARED,
)
_OF_FDRSVC = (
    *("epsilon", "kappa", "norm", "rho", "step_size", "step_decay", "worst_case", "loss"),
    *("secure_aggregation", "blur", "resolution", "metric", "points_per_round"),
    *_SHARED,
)
_OF_TASK = (
    *("epsilon", "norm", "support", "worst_case", "loss", "fit_intercept", "blur", "resolution"),
)


@dataclass(frozen=True)
class RunSettings:
    """A run; names as in run-config with - for _. Those of the methods are as in the estimators.

    Attributes
    ----------
    algorithm : str
        "bundle", "admm", "admm-sc", "subgradient", or a baseline: "fedsgd", "fedavg", "fedprox",
        "feddro".
    clients : str
        Names of the clients that must take part, with commas; empty is whoever answers.
    n_clients : int
        Without ``clients``, how many to wait for; 0 is everybody connected when the run starts.
    quorum : int
        Valid answers that a round needs; 0 is all.
    deadline, join_deadline : float
        Seconds for a round, and for all clients to join.
    on_fault : str
        "stop" or "drop".
    secure_aggregation : bool
        The server sees weighted sums over the clients only; at least three must take part.
    largest_epsilon : float
        No plant may set itself a larger radius, with which it would pull the model towards 0. 0 is
        the run's own ``epsilon``: plants may be smaller.
    blur : int
        Rows that count by a fraction in each plant's cuts, so that single ones do not show.
    resolution : float
        Plants round risks up to a multiple of this and constants of cuts down, since exact numbers
        give rows away; 0 is exact. The gap grows by up to twice as much. Baselines too.
    metric : {"auto", "none", "second-moments"}
        As in :class:`FDRSVC`. A plant with fewer than two rows for each feature, or that blurs or
        rounds, does not give its second moments, whatever is set.
    points_per_round : int
        At how many models plants are asked in a round: more are fewer rounds.
    feature_limit : float or str
        No plant's features, in the scale that training uses, may exceed this in size: one number
        for all, numbers with commas, one per feature, or "contract": max(|low|, |high|) of each
        feature of the data contract. 0 is no limit. A plant with larger ones does not join, and
        answers that only larger ones could give are faults. With ``support`` "unit-box" it is at
        most 1, with "contract" at most the contract's.
    contract : str
        The plants' data contract, on the server's machine: for "contract" above and as a
        ``support``. A plant with another contract does not take part. In a simulation it is
        contract.json in ``data``, if there is one.
    leave_out_after : int
        With ``on_fault`` "drop": a plant that has had no answer that counts for this many rounds in
        a row, or has broken a rule in this many, is left out for good; 0 is never.
    output : str
        Folder for checkpoints, model, certificate and audit log, on the server's machine.
    resume : bool
        Go on from the newest checkpoint in ``output``.
    data, state, label : str
        For simulations only: folder with one CSV per client, one for their memories, label column.
    """

    algorithm: str = "bundle"
    tol: float = 1e-4
    max_rounds: int = 200
    epsilon: float | str = "auto"
    largest_epsilon: float = 0.0
    kappa: float = 1.0
    norm: str = "linf"
    support: str = "none"
    feature_limit: float | str = 0.0
    contract: str = ""
    worst_case: str = "exact"
    loss: str = "hinge"
    fit_intercept: bool = True
    client_weights: str = "equal"
    rho: float = 1e-2
    tau: float | str = "auto"
    step_size: float = 1.0
    step_decay: str = "1/sqrt(t)"
    learning_rate: float = 0.1
    penalty: float | str = "auto"
    n_epochs: int = 5
    batch_fraction: float = 0.2
    prox_weight: float = 1.0
    temperature: float = 10.0
    seed: int = 0
    clients: str = ""
    n_clients: int = 0
    quorum: int = 0
    deadline: float = 300.0
    join_deadline: float = 120.0
    on_fault: str = "stop"
    leave_out_after: int = 3
    secure_aggregation: bool = False
    blur: int = 0
    resolution: float = 0.0
    metric: str = "auto"
    points_per_round: int = 2
    output: str = "fdrsvm-run"
    resume: bool = False
    data: str = ""
    state: str = ""
    label: str = "label"

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RunSettings:
        """From run-config; an unknown name or another type is an error that names it."""
        defaults = cls().to_config()
        values = {}
        for key, value in config.items():
            name = key.replace("_", "-")
            if name not in defaults:
                raise InvalidInputError("run-config", "must hold known settings", f"see {key!r}")
            values[name.replace("-", "_")] = _typed(name, value, defaults[name])
        settings = cls(**values)
        settings.check()
        return settings

    def to_config(self) -> dict[str, Any]:
        """As run-config has it."""
        return {entry.name.replace("_", "-"): getattr(self, entry.name) for entry in fields(self)}

    def _named(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def check(self) -> None:
        """All that can be checked before anybody has joined."""
        config = self.to_config()
        for name, choices in _CHOICES.items():
            check_choice(config[name], name, choices)
        for name in _COUNTS:
            check_count(config[name], name, least=0)
        for name in ("largest-epsilon", "resolution"):
            check_non_negative(config[name], name)
        for name in ("deadline", "join-deadline"):
            check_positive(config[name], name)
        if self.feature_limit != "contract":
            self._own_limits()
        estimator = self.estimator()
        if isinstance(estimator, FDRSVC):
            estimator._check_options()
        estimator._method()

    @property
    def is_baseline(self) -> bool:
        """Whether the method has a penalty, and no ball."""
        return self.algorithm in _BASELINES

    @property
    def expected(self) -> tuple[str, ...]:
        """The clients by name."""
        return tuple(name.strip() for name in self.clients.split(",") if name.strip())

    @property
    def output_folder(self) -> Path:
        """In full."""
        return Path(self.output).expanduser().resolve()

    def read_contract(self) -> FeatureContract | None:
        """That of the plants, or None if the server has none; an error names what is wrong."""
        simulated = Path(self.data).expanduser() / "contract.json"
        if self.contract:
            return read_contract(Path(self.contract))
        if self.data and simulated.exists():
            return read_contract(simulated)
        if "contract" in (self.support, self.feature_limit):
            name = "support" if self.support == "contract" else "feature-limit"
            raise InvalidInputError(
                "contract",
                f"must be the data contract's file on this machine, since {name} is its limits",
                "none is named",
            )
        return None

    def _own_limits(self) -> float | tuple[float, ...]:
        """``feature_limit`` in numbers, if it is not the contract's."""
        if not isinstance(self.feature_limit, str):
            return check_non_negative(self.feature_limit, "feature-limit")
        try:
            limits = tuple(map(float, self.feature_limit.strip("[] ").split(",")))
        except ValueError:
            limits = ()
        if not limits or not all(0.0 <= number < math.inf for number in limits):
            raise InvalidInputError(
                "feature-limit",
                "must be a number, numbers with commas, one per feature, or 'contract'",
                f"it is {self.feature_limit!r}",
            )
        return limits

    @property
    def largest_feature(self) -> float | tuple[float, ...]:
        """What plants and server hold features against, in all or one by one; 0 is no limit."""
        agreed: list[Any] = [1.0] if self.support == "unit-box" else []
        if "contract" in (self.support, self.feature_limit):
            contract = self.read_contract()
            assert contract is not None  # it would have been refused
            agreed.append(np.max(np.abs(contract.box), axis=0))
        if self.feature_limit not in ("contract", 0.0):
            agreed.append(self._own_limits())
        if not agreed:
            return 0.0
        lengths = {len(limits) for limits in agreed if np.ndim(limits)}
        if len(lengths) > 1:
            raise InvalidInputError(
                "feature-limit",
                "must have one number for each feature of the contract",
                f"they are {' and '.join(map(str, sorted(lengths)))}",
            )
        smallest = np.min(np.broadcast_arrays(*agreed), axis=0)
        return float(smallest) if smallest.ndim == 0 else tuple(smallest.tolist())

    def largest_radius(self, n_rows: int) -> float:
        """No plant with this many rows may set itself a larger one."""
        own = self.penalty if self.is_baseline else self.epsilon
        return self.largest_epsilon or float(auto_radius(n_rows) if own == "auto" else own)

    def limits(self, n_features: int) -> Limits:
        """What the server holds the plants' answers against."""
        ball = {} if self.is_baseline else self._named(("loss", "worst_case", "blur"))
        limit = self.largest_feature or None
        return Limits.checked(limit, n_features, resolution=self.resolution, **ball)

    def estimator(self) -> FDRSVC | FedSVC:
        """What the model file will hold, not fitted yet."""
        if self.is_baseline:
            return FedSVC(self.algorithm, random_state=self.seed, **self._named(_OF_BASELINES))
        return FDRSVC(
            self.algorithm,
            support=None if self.support == "none" else self.support,
            tau=None if isinstance(self.tau, str) else self.tau,
            **self._named(_OF_FDRSVC),
        )

    def task(self) -> Task:
        """What clients are told to solve, before their classes are known."""
        if self.is_baseline:  # a penalty in place of the radius: they have no ball
            return Task(
                epsilon=self.penalty,
                kappa="inf",
                feature_limit=self.largest_feature,
                fit_intercept=self.fit_intercept,
                resolution=self.resolution,
                merge=False,
            )
        kappa = str(self.kappa) if math.isinf(self.kappa) else self.kappa
        return Task(kappa=kappa, feature_limit=self.largest_feature, **self._named(_OF_TASK))


def contract_config(path: Path) -> dict[str, str]:
    """Settings of runs whose plants have this contract, which the server has too."""
    features = read_contract(path).features
    has_limits = all(None not in (feature.low, feature.high) for feature in features)
    return {"contract": str(path), **({"feature-limit": "contract"} if has_limits else {})}


def _typed(key: str, value: Any, default: Any) -> Any:
    """A value of the default's type; whole numbers are numbers too, and some may be "auto"."""
    kind = float if key in _MAY_BE_AUTO else type(default)
    if key == "feature-limit" and isinstance(value, str | list):
        return str(value)
    if key in _MAY_BE_AUTO and value == "auto":
        return value
    if key == "kappa" and value == "inf":
        return math.inf
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise InvalidInputError(key, f"must be of type {kind.__name__}", f"it is {value!r}")
    return value
