"""All settings of a run, as the server reads them from Flower's run-config, and checks them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from fdrsvm.core.arrays import check_choice, check_count, check_non_negative, check_positive
from fdrsvm.core.files import read_capped
from fdrsvm.data.contract import FeatureContract
from fdrsvm.errors import ClientError, InvalidInputError
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.estimators.fedsvc import FedSVC
from fdrsvm.federated.joining import Task
from fdrsvm.federated.limits import Limits
from fdrsvm.risk.radius import practical_radius

_ROUNDING = 1e-9
_MAX_CONTRACT = 1 << 24
_BASELINES = ("fedsgd", "fedavg", "fedprox", "feddro")
_SUPPORTS = ("none", "unit-box", "contract")


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
    output: str = "fdrsvm-run"
    resume: bool = False
    data: str = ""
    state: str = ""
    label: str = "label"

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RunSettings:
        """From run-config; an unknown name or another type is an error that names it."""
        defaults = {entry.name: entry.default for entry in fields(cls)}
        values = {}
        for key, value in config.items():
            name = key.replace("-", "_")
            if name not in defaults:
                raise InvalidInputError("run-config", "must hold known settings", f"see {key!r}")
            values[name] = _typed(key, value, defaults[name])
        settings = cls(**values)
        settings.check()
        return settings

    def to_config(self) -> dict[str, Any]:
        """As run-config has it."""
        return {entry.name.replace("_", "-"): getattr(self, entry.name) for entry in fields(self)}

    def check(self) -> None:
        """All that can be checked before anybody has joined."""
        check_choice(self.support, "support", _SUPPORTS)
        check_choice(self.on_fault, "on-fault", ("stop", "drop"))
        check_choice(self.client_weights, "client-weights", ("equal", "samples"))
        self._check_feature_limit()
        check_count(self.leave_out_after, "leave-out-after", least=0)
        check_non_negative(self.largest_epsilon, "largest-epsilon")
        check_non_negative(self.resolution, "resolution")
        check_positive(self.deadline, "deadline")
        check_positive(self.join_deadline, "join-deadline")
        check_count(self.n_clients, "n-clients", least=0)
        check_count(self.quorum, "quorum", least=0)
        estimator = self.estimator()
        if isinstance(estimator, FDRSVC):
            estimator._check_options()
        estimator._method()

    @property
    def expected(self) -> tuple[str, ...]:
        """The clients by name."""
        return tuple(name.strip() for name in self.clients.split(",") if name.strip())

    @property
    def needs_contract(self) -> bool:
        """Whether the server must know the contract's limits."""
        return "contract" in (self.support, self.feature_limit)

    def read_contract(self) -> FeatureContract | None:
        """That of the plants, or None if the server has none; an error names what is wrong."""
        path = self._contract_path
        if path is None:
            if self.needs_contract:
                name = "support" if self.support == "contract" else "feature-limit"
                raise InvalidInputError(
                    "contract",
                    f"must be the data contract's file on this machine, since {name} is its limits",
                    "none is named",
                )
            return None
        try:
            return FeatureContract.from_json(read_capped(path, _MAX_CONTRACT))
        except OSError as error:
            raise InvalidInputError(
                "contract", "must be a file that can be read", f"{path}: {error.strerror}"
            ) from None

    @property
    def _contract_path(self) -> Path | None:
        if self.contract:
            return Path(self.contract).expanduser()
        simulated = Path(self.data).expanduser() / "contract.json"
        return simulated if self.data and simulated.exists() else None

    def _check_feature_limit(self) -> None:
        if not isinstance(self.feature_limit, str):
            check_non_negative(self.feature_limit, "feature-limit")
        elif self.feature_limit != "contract":
            _numbers(self.feature_limit)

    @property
    def largest_feature(self) -> float | tuple[float, ...]:
        """What plants and server hold features against, in all or one by one; 0 is no limit."""
        agreed: list[Any] = []
        if self.needs_contract:
            agreed.append(_sizes_of(self.read_contract()))
        if self.support == "unit-box":
            agreed.append(1.0)
        if isinstance(self.feature_limit, str):
            if self.feature_limit != "contract":
                agreed.append(_numbers(self.feature_limit))
        elif self.feature_limit:
            agreed.append(self.feature_limit)
        return _smallest(agreed)

    def check_radius(self, client_id: str, epsilon: float, n_rows: int) -> None:
        """Whether a plant may have this radius, or a ClientError that names it."""
        own = self.penalty if self.algorithm in _BASELINES else self.epsilon
        agreed = practical_radius(n_rows) if isinstance(own, str) else own
        largest = self.largest_epsilon or float(agreed)
        if epsilon > largest * (1.0 + _ROUNDING):
            raise ClientError(
                client_id,
                0,
                f"its radius {epsilon:g} exceeds {largest:g}; the run's largest-epsilon may allow "
                "it",
            )

    def limits(self, n_features: int) -> Limits:
        """What the server holds the plants' answers against."""
        is_baseline = self.algorithm in _BASELINES
        return Limits.checked(
            self.largest_feature or None,
            n_features,
            loss="hinge" if is_baseline else self.loss,
            worst_case="exact" if is_baseline else self.worst_case,  # type: ignore[arg-type]
            blur=0 if is_baseline else self.blur,
            resolution=self.resolution,
        )

    @property
    def output_folder(self) -> Path:
        """In full."""
        return Path(self.output).expanduser().resolve()

    def estimator(self) -> FDRSVC | FedSVC:
        """What the model file will hold, not fitted yet."""
        shared: dict[str, Any] = {
            "max_rounds": self.max_rounds,
            "tol": self.tol,
            "client_weights": self.client_weights,
            "fit_intercept": self.fit_intercept,
        }
        if self.algorithm in _BASELINES:
            return FedSVC(
                self.algorithm,
                learning_rate=self.learning_rate,
                penalty=self.penalty,
                n_epochs=self.n_epochs,
                batch_fraction=self.batch_fraction,
                prox_weight=self.prox_weight,
                temperature=self.temperature,
                random_state=self.seed,
                **shared,
            )
        return FDRSVC(
            self.algorithm,
            epsilon=self.epsilon,
            kappa=self.kappa,
            norm=self.norm,  # type: ignore[arg-type]
            support=None if self.support == "none" else self.support,
            rho=self.rho,
            tau=None if isinstance(self.tau, str) else self.tau,
            step_size=self.step_size,
            step_decay=self.step_decay,  # type: ignore[arg-type]
            worst_case=self.worst_case,  # type: ignore[arg-type]
            loss=self.loss,
            secure_aggregation=self.secure_aggregation,
            blur=self.blur,
            resolution=self.resolution,
            **shared,
        )

    def task(self) -> Task:
        """What clients are told to solve, before their classes are known."""
        if self.algorithm in _BASELINES:  # a penalty in place of the radius: they have no ball
            return Task(
                epsilon=self.penalty,
                kappa="inf",
                feature_limit=self.largest_feature,
                fit_intercept=self.fit_intercept,
                resolution=self.resolution,
                merge=False,
            )
        return Task(
            epsilon=self.epsilon,
            kappa=str(self.kappa) if math.isinf(self.kappa) else self.kappa,
            norm=self.norm,
            support=self.support,
            feature_limit=self.largest_feature,
            worst_case=self.worst_case,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            blur=self.blur,
            resolution=self.resolution,
        )


def contract_config(path: Path) -> dict[str, str]:
    """Settings of runs whose plants have this contract, which the server has too."""
    config = {"contract": str(path)}
    features = FeatureContract.from_json(read_capped(path, _MAX_CONTRACT)).features
    if all(None not in (feature.low, feature.high) for feature in features):
        config["feature-limit"] = "contract"
    return config


_MAY_BE_AUTO = ("epsilon", "tau", "penalty")
_MAY_BE_TEXT = ("feature-limit", "feature_limit")


def _numbers(text: str) -> tuple[float, ...]:
    """One limit per feature."""
    try:
        found = tuple(float(part) for part in text.strip("[] ").split(","))
    except ValueError:
        found = ()
    if not found or not all(0.0 <= number < math.inf for number in found):
        raise InvalidInputError(
            "feature-limit",
            "must be a number, numbers with commas, one per feature, or 'contract'",
            f"it is {text!r}",
        )
    return found


def _sizes_of(contract: FeatureContract | None) -> tuple[float, ...]:
    """max(|low|, |high|) of each feature."""
    if contract is None:
        return ()
    low, high = contract.box
    return tuple(np.maximum(np.abs(low), np.abs(high)).tolist())


def _smallest(limits: Sequence[float | tuple[float, ...]]) -> float | tuple[float, ...]:
    """Of each feature the smallest limit; 0 if there is none at all."""
    if not limits:
        return 0.0
    lengths = {len(one) for one in limits if isinstance(one, tuple)}
    if len(lengths) > 1:
        raise InvalidInputError(
            "feature-limit",
            "must have one number for each feature of the contract",
            f"they are {' and '.join(map(str, sorted(lengths)))}",
        )
    found = np.min(np.broadcast_arrays(*limits), axis=0)
    return float(found) if found.ndim == 0 else tuple(found.tolist())


def _typed(key: str, value: Any, default: Any) -> Any:
    """A value of the default's type; whole numbers are numbers too, and some may be "auto"."""
    wanted = float if key in _MAY_BE_AUTO else type(default)
    if key in _MAY_BE_TEXT and isinstance(value, str | list):
        return str(value)
    if key in _MAY_BE_AUTO and value == "auto":
        return value
    if key == "kappa" and value == "inf":
        return math.inf
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not wanted:
        raise InvalidInputError(key, f"must be of type {wanted.__name__}", f"it is {value!r}")
    return value
