"""A training run from a TOML file or typed settings to a model file and its certificate.

The sections of the file are

    data       files or folder, clients, label, fault, client_column, ignore, contract, clip,
               missing
    scaling    method, clip
    model      estimator, and any parameter of it
    decision   tune, goal, label_noise, folds, probabilities

Unknown names are refused. Paths are relative to the TOML file. The run reads the rows, scales them,
tunes and fits, folds the scaling into the weights, and keeps how it went. Tuned are the parameters
that nobody has set, and where the scores are cut; with ``tune = false`` the model is trained once,
and cut at 0.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import fdrsvm
from fdrsvm.core.arrays import Array, check_choice, check_count
from fdrsvm.core.files import write_together
from fdrsvm.core.plain_json import encode, plain, to_plain
from fdrsvm.data.rows import DataSettings, Rows
from fdrsvm.decision.calibration import calibrate
from fdrsvm.decision.goals import DEFAULT_GOAL, goal_in_words, positive_class, read_goal
from fdrsvm.errors import DegenerateModelWarning, FDRSVMError, InvalidInputError
from fdrsvm.estimators.advice import look_at_columns
from fdrsvm.estimators.search import DEFAULT_GRID, FEATURES
from fdrsvm.federated.rounds import Callback
from fdrsvm.model.linear_model import POSITIVE, TUNING, VERDICT, LinearModel
from fdrsvm.model.model_file import model_bytes
from fdrsvm.model.trained_ball import balls, client_weights
from fdrsvm.model.unscaling import METHODS, learn_scaling
from fdrsvm.risk.feature_maps import read_map

_TO_ONE = ("minmax", "limits")  # scalings after which sensors lie between 0 and 1
ESTIMATORS = ("FDRSVC", "DRSVC", "FedSVC")
MODEL, CERTIFICATE = "model.safetensors", "certificate.json"
_CERTIFIED = ("data", "scaling", POSITIVE, TUNING, VERDICT)
# No seconds: the same command gives the same file.
_KEPT_OF_A_ROUND = ("round", "objective", "lower_bound", "gap", "n_answers", "bytes_up")


# --- settings ---


@dataclass(frozen=True)
class FitSettings:
    """A training run.

    Attributes
    ----------
    fault : str or None
        The class that is looked for, of two; by default the rarer one.
    tune : bool
        Whether cross-validation chooses radius, label price, class weight and threshold, as far as
        they are not set. For FDRSVC; the others are trained once.
    goal : str or None
        What the threshold and the rest are to be best for, as :func:`read_goal` reads it; None is
        balanced accuracy.
    label_noise : float
        Share of labels that are wrong, as far as known.
    folds : int
        Of the cross-validation.
    probabilities : {"", "shared", "by-client"}
        Whether sigmoids are fitted to the scores of held-out rows: one for all clients, or for a
        client that has the rows for it one of its own.
    """

    data: DataSettings = field(default_factory=DataSettings)
    scaling: str = "minmax"
    clip: bool = False
    estimator: str = "FDRSVC"
    params: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None
    tune: bool = True
    goal: str | None = None
    label_noise: float = 0.0
    folds: int = 5
    probabilities: str = ""

    @property
    def is_tuned(self) -> bool:
        """Whether anything is tuned: that is for FDRSVC."""
        return self.tune and self.estimator == "FDRSVC"

    def with_data(self, **given: Any) -> FitSettings:
        """With what is given in place of the file's; files in place of all files."""
        if given.get("paths") or given.get("named"):
            given = {"paths": (), "named": {}, **given}
        return replace(self, data=replace(self.data, **given))

    def with_params(self, params: Mapping[str, Any]) -> FitSettings:
        """With these parameters in place of the file's."""
        return replace(self, params={**self.params, **params})

    def check(self) -> None:
        """Names of estimator, parameters and scaling, before anything is read."""
        check_choice(self.scaling, "scaling", METHODS)
        known = parameter_names(self.estimator)
        _refuse_unknown(self.params, known, f"parameters of {self.estimator}")
        chosen = read_map(self.params.get(FEATURES, "linear"))
        if chosen is not None and chosen.limits is None and not _have_limits(self):
            raise InvalidInputError(
                FEATURES,
                "needs limits of the sensors",
                f"--scaling {self.scaling} sets none: take minmax or limits, or state them in a "
                'configuration file: features = { map = "additive", limits = [low, high] }',
            )
        read_goal(self.goal or DEFAULT_GOAL)
        check_choice(self.probabilities, "probabilities", ("", "shared", "by-client"))
        check_count(self.folds, "folds", 2)
        if not self.is_tuned:
            for name in ("goal", "label_noise", "probabilities"):
                if getattr(self, name):
                    raise InvalidInputError(
                        name,
                        "must not be given where nothing is tuned",
                        "leave it out, or tune: that is for FDRSVC, and without --no-tune "
                        "(tune = false)",
                    )


# The keys of each section of a file with what they are by default, which also tells their type.
# [model] has the parameters of its estimator too.
_SECTIONS: dict[str, dict[str, Any]] = {
    "data": {
        "files": [],
        "folder": "",
        "clients": {},
        "label": DataSettings.label,
        "fault": "",
        "client_column": "",
        "ignore": [],
        "contract": "",
        "clip": DataSettings.clip,
        "missing": DataSettings.missing,
    },
    "scaling": {"method": FitSettings.scaling, "clip": FitSettings.clip},
    "model": {"estimator": FitSettings.estimator},
    "decision": {
        "tune": FitSettings.tune,
        "goal": "",
        "label_noise": FitSettings.label_noise,
        "folds": FitSettings.folds,
        "probabilities": FitSettings.probabilities,
    },
}


def parameter_names(estimator: str) -> list[str]:
    """What an estimator can be told in a file or a command."""
    check_choice(estimator, "estimator", ESTIMATORS)
    names = inspect.signature(getattr(fdrsvm, estimator)).parameters
    # No file can hold the first, and the second is done where a plant's rows are: personalise.
    return [name for name in names if name not in ("callbacks", "personal")]


def read_configuration(path: Path) -> FitSettings:
    """Settings from a TOML file, or an error that names the file and the key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(
            "config", "must be a file that can be read", f"{path}: {error.strerror}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError("config", "must be TOML", f"{path}: {error}") from None
    _refuse_unknown(content, _SECTIONS, f"{path}: sections")
    given = {name: _read_section(content.get(name, {}), name, path) for name in _SECTIONS}
    data, scaling, model, decision = (given[name] for name in _SECTIONS)
    files, named, ignore = data["files"], data["clients"], data["ignore"]
    if not all(isinstance(text, str) for text in [*files, *named.values(), *ignore]):
        raise InvalidInputError(f"{path}: [data]", "files and columns must be text", "some are not")
    home = path.parent
    settings = FitSettings(
        data=DataSettings(
            paths=tuple(home / name for name in [*files, *filter(None, [data["folder"]])]),
            named={name: home / file for name, file in named.items()},
            label=data["label"],
            client_column=data["client_column"] or None,
            ignore=tuple(ignore),
            contract=home / data["contract"] if data["contract"] else None,
            clip=data["clip"],
            missing=data["missing"],
        ),
        scaling=scaling["method"],
        clip=scaling["clip"],
        estimator=model.pop("estimator"),
        fault=data["fault"] or None,
        **{**decision, "goal": decision["goal"] or None},
    )
    return settings.with_params({name: read_value(value) for name, value in model.items()})


def _read_section(section: Any, name: str, path: Path) -> dict[str, Any]:
    """A section with all its keys."""
    if not isinstance(section, dict):
        raise InvalidInputError(
            f"{path}: {name}", f"must be a section [{name}]", f"it is {section!r}"
        )
    known = _SECTIONS[name]
    if name != "model":
        _refuse_unknown(section, known, f"{path}: keys of [{name}]")
    # A whole number will do for a share: 0 is 0.0.
    given = {
        key: float(value) if type(value) is int and type(known.get(key)) is float else value
        for key, value in section.items()
    }
    for key, default in known.items():
        if type(given.get(key, default)) is not type(default):
            wanted = type(default).__name__
            raise InvalidInputError(key, f"must be of type {wanted}", f"it is {section[key]!r}")
    return {**known, **given}


def read_value(value: Any) -> Any:
    """A parameter as estimators take it: a pair of bounds is a tuple."""
    return tuple(value) if isinstance(value, list) and len(value) == 2 else value


def _refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    allowed = list(known)
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise InvalidInputError(
            what, f"must be among {', '.join(allowed)}", f"unknown: {', '.join(unknown)}"
        )


# --- the run ---


@dataclass(frozen=True)
class Training:
    """A trained model, ready to be written.

    Attributes
    ----------
    model, rows
        What was trained, and on what.
    warnings : tuple of str
        What was said on the way, such as where a tolerance was not reached.
    is_short : bool
        Whether the model's own certified gap is above what was asked for.
    verdict : str or None
        What is wrong with it, and what to type about that.
    has_given_up : bool
        Whether it misses a class or ignores all features.
    """

    model: LinearModel
    rows: Rows
    warnings: tuple[str, ...]
    is_short: bool = False
    verdict: str | None = None
    has_given_up: bool = False


def train(
    settings: FitSettings,
    rows: Rows,
    watch: Callback | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Training:
    """Fit as the settings say.

    Parameters
    ----------
    settings : FitSettings
        Estimator, parameters, scaling, and what is tuned.
    rows : Rows
        What the clients have.
    watch : callable, optional
        Called with a RoundRecord and a model after each round of the last training.
    tell : callable, optional
        Called with the number of trials done and of all, while configurations are tried.
    """
    settings.check()
    classes, totals = np.unique(rows.labels, return_counts=True)
    positive = positive_class(classes.tolist(), totals, settings.fault, "fault")
    scaling, X = learn_scaling(rows, settings.scaling, clip=settings.clip)
    estimator = wanted_estimator(settings, rows.labels)
    if watch is not None:
        estimator.set_params(callbacks=(watch,))
    if settings.is_tuned and tell is not None:
        estimator.listen(tell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(estimator, X, rows)
    trained = estimator.best_estimator_ if settings.is_tuned else estimator
    trained.feature_names_in_ = np.array(rows.feature_names, dtype=object)
    scaled: LinearModel = trained._linear_model()
    faults, said = sort_warnings([one.message for one in caught], rows, X)
    verdict = "; ".join(one.for_command_line for one in faults) or None
    record = {
        "scaling": scaling.to_record(),
        "history": {
            name: [getattr(one, name) for one in estimator.history_] for name in _KEPT_OF_A_ROUND
        },
        "data": facts_of(scaled, rows),
        POSITIVE: None if positive is None else classes.tolist()[positive],
        VERDICT: verdict,
        TUNING: tuning_of(estimator) if settings.is_tuned else None,
    }
    record = {name: value for name, value in record.items() if value is not None}
    model = scaling.fold(replace(scaled, record=dict(plain(record, "record"))))
    if settings.probabilities:
        per_client, noise = settings.probabilities == "by-client", settings.label_noise
        held_out = estimator.held_out_rows()
        try:
            calibration = calibrate(model, held_out, label_noise=noise, per_client=per_client)
        except FDRSVMError as error:  # nobody should lose the model for it
            said.append(f"the model has no probabilities: {error}")
        else:
            model = calibration.model
            said += calibration.found
    tol = float(estimator.tol)
    is_short = tol > 0.0 and bool(np.max(estimator.gap_) > tol)
    has_given_up = any(one.has_given_up for one in faults)
    return Training(model, rows, tuple(said), is_short, verdict, has_given_up)


def sort_warnings(
    caught: Sequence[Warning | str], rows: Rows, scaled: Array
) -> tuple[list[DegenerateModelWarning], list[str]]:
    """What is wrong with the model, and what else was said.

    The estimator knows no names of columns. Identifiers are looked for in the rows as they came:
    scaled, they are whole no more.
    """
    told = [one for one in caught if isinstance(one, DegenerateModelWarning)]
    said = [str(one) for one in caught if not isinstance(one, DegenerateModelWarning)]
    own = [rows.of(name) for name in rows.client_names]
    scales = look_at_columns([replace(rows, X=scaled)], rows.feature_names).scales
    ids = look_at_columns(own, rows.feature_names).ids
    given_up = [one for one in told if one.has_given_up]
    return [one for one in (*given_up, scales, ids) if one is not None], said


def _have_limits(settings: FitSettings) -> bool:
    """Whether maps know where sensors range: from 0 to 1 if they are scaled so, or as agreed."""
    return settings.scaling in _TO_ONE or settings.params.get("support") is not None


def wanted_estimator(settings: FitSettings, labels: Any) -> Any:
    """What is to be fitted; a search leaves what is set as it is."""
    if not settings.is_tuned:
        return make_estimator(settings.estimator, settings.params, labels)
    tried = (*DEFAULT_GRID, FEATURES) if _have_limits(settings) else DEFAULT_GRID
    free = [name for name in tried if name not in settings.params]
    params = {
        **settings.params,
        # Where all is set, only the threshold is left.
        "param_grid": free or {"kappa": [settings.params["kappa"]]},
        "cv": settings.folds,
        "scoring": read_goal(settings.goal or DEFAULT_GOAL),
        "pos_label": settings.fault,
        "label_noise": settings.label_noise,
        "random_state": 0,  # the same command gives the same model
    }
    return make_estimator("FDRSVCCV", params, labels)


def tuning_of(search: Any) -> dict[str, Any]:
    """How the search chose, for a model's record: counts of held-out rows, and no row."""
    best, results = search.best_index_, search.cv_results_
    by_map: dict[str, float] = {}
    for point, score in zip(results["params"], results["pooled_test_score"], strict=True):
        name = point.get(FEATURES, search.features)
        if isinstance(name, str) and not np.isnan(score):
            by_map[name] = max(by_map.get(name, -np.inf), float(score))
    return {
        "goal": goal_in_words(search.scoring_, getattr(search, "pos_label_", None)),
        "label_noise": search.label_noise,
        "n_folds": search.n_splits_,
        "n_configurations": len(results["params"]),
        "chosen": {name: to_plain(value, name) for name, value in search.best_params_.items()},
        "threshold": search.threshold_,
        "score": search.best_score_,
        "score_by_map": by_map,
        "counts": results["counts"][best].sum(axis=0).tolist(),
    }


def make_estimator(name: str, params: Mapping[str, Any], y: Any) -> Any:
    """An estimator with parameters from a file, where labels can only be text."""
    given = dict(params)
    by_text = given.get("class_weight")
    if isinstance(by_text, Mapping):
        labels = {str(label): label for label in np.unique(y).tolist()}
        unknown = [key for key in by_text if str(key) not in labels]
        if unknown:
            raise InvalidInputError(
                "class_weight", f"must be for the labels {list(labels)}", f"it has {unknown}"
            )
        given["class_weight"] = {labels[str(key)]: value for key, value in by_text.items()}
    if name == "FedSVC":
        given.setdefault("random_state", 0)  # the same command gives the same model
    return getattr(fdrsvm, name)(**given)


def fit(estimator: Any, X: Any, rows: Rows) -> None:
    """Across clients, or on all rows together if the estimator knows no clients."""
    known = {"clients": rows.clients} if estimator.knows_clients else {}
    estimator.fit(X, rows.labels, **known)


def write_training(training: Training, folder: Path) -> tuple[Path, Path]:
    """Model file and certificate, both or neither; the folder is made if need be."""
    model, certificate = folder / MODEL, folder / CERTIFICATE
    text = json.dumps(certificate_content(training.model), indent=2, sort_keys=True)
    data = model_bytes(training.model)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_together((model, data), (certificate, text.encode() + b"\n"))
    except OSError:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    return model, certificate


def certificate_content(model: LinearModel) -> dict[str, Any]:
    """What is proved of which model, as JSON for people and programs."""
    content: dict[str, Any] = {
        "model_sha256": model.fingerprint,
        "release": fdrsvm.__version__,
        "estimator": model.estimator,
        "classes": list(model.classes),
        "params": model.params,
        **model.certificate,
        **{name: model.record[name] for name in _CERTIFIED if name in model.record},
    }
    if model.features is not None:
        content["objective_is"] = (
            "at most: an upper bound on the worst case of the sensors in front of the feature map; "
            "fdrsvm certify, given the rows, says how tight it is"
        )
    return dict(encode(plain(content, "certificate")))


def facts_of(model: LinearModel, rows: Rows) -> dict[str, Any]:
    """Counts and agreed numbers of the training rows; no value of any row."""
    counts = rows.counts()
    facts: dict[str, Any] = {"rows": counts, **rows.record()}
    if model.estimator == "FDRSVC":
        facts["epsilon"] = {name: ball.epsilon for name, ball in balls(model, counts).items()}
        facts["client_weights"] = client_weights(model, counts)
    if rows.contract is not None:
        facts["contract"] = rows.contract.fingerprint
    return facts
