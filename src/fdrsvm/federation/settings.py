"""All settings of a run, as the server reads them from Flower's run-config, and checks them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fdrsvm.ambiguity.radius import practical_radius
from fdrsvm.errors import ClientError, InvalidInputError
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.estimators.fedsvc import FedSVC
from fdrsvm.federated.joining import Task
from fdrsvm.federated.limits import Limits
from fdrsvm.maths.arrays import check_choice, check_count, check_non_negative, check_positive

_ROUNDING = 1e-9
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
    feature_limit : float
        No plant's features, in the scale that training uses, may exceed this in size; 0 is no
        limit. A plant with larger ones does not join, and answers that only larger ones could give
        are faults. With ``support`` "unit-box" it is 1.
    output : str
        Folder for checkpoints, model, certificate and audit log, on the server's machine.
    resume : bool
        Go on from the newest checkpoint in ``output``.
    data, state, label : str
        For simulations only: folder with a CSV a client, folder for their memories, label column.
    """

    algorithm: str = "bundle"
    tol: float = 1e-4
    max_rounds: int = 200
    epsilon: float | str = "auto"
    largest_epsilon: float = 0.0
    kappa: float = 1.0
    norm: str = "linf"
    support: str = "none"
    feature_limit: float = 0.0
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
        check_non_negative(self.feature_limit, "feature-limit")
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
    def largest_feature(self) -> float:
        """What plants and server hold features against; 0 is no limit."""
        if self.support == "unit-box":
            return min(self.feature_limit, 1.0) or 1.0
        return self.feature_limit

    def check_radius(self, client_id: str, epsilon: float, n_rows: int) -> None:
        """Whether a plant may have this radius, or a ClientError that names it."""
        if self.algorithm in _BASELINES:
            return
        agreed = practical_radius(n_rows) if isinstance(self.epsilon, str) else self.epsilon
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
                feature_limit=self.feature_limit,
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


_MAY_BE_AUTO = ("epsilon", "tau", "penalty")


def _typed(key: str, value: Any, default: Any) -> Any:
    """A value of the default's type; whole numbers are numbers too, and some may be "auto"."""
    wanted = float if key in _MAY_BE_AUTO else type(default)
    if key in _MAY_BE_AUTO and value == "auto":
        return value
    if key == "kappa" and value == "inf":
        return math.inf
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not wanted:
        raise InvalidInputError(key, f"must be of type {wanted.__name__}", f"it is {value!r}")
    return value
