"""What a training run is told: a TOML file, and what the command line puts in its place.

    data       files or folder, clients, label, fault, client_column, ignore, contract, clip
    scaling    method, clip
    model      estimator, and any parameter of it

are its sections. Unknown names are refused. Paths are relative to the TOML file.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fdrsvm.core.arrays import check_choice
from fdrsvm.data.rows import DataSettings
from fdrsvm.errors import InvalidInputError
from fdrsvm.model.unscaling import METHODS

ESTIMATORS = ("FDRSVC", "DRSVC", "FedSVC")
_SECTIONS = ("data", "scaling", "model")
_DATA_KEYS = (
    "files",
    "folder",
    "clients",
    "label",
    "fault",
    "client_column",
    "ignore",
    "contract",
    "clip",
)


@dataclass(frozen=True)
class FitSettings:
    """A training run; ``fault`` is the class that scores of one class are of."""

    data: DataSettings = field(default_factory=DataSettings)
    scaling: str = "minmax"
    clip: bool = False
    estimator: str = "FDRSVC"
    params: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None

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


def parameter_names(estimator: str) -> list[str]:
    """What an estimator can be told."""
    import fdrsvm

    check_choice(estimator, "estimator", ESTIMATORS)
    return list(inspect.signature(getattr(fdrsvm, estimator)).parameters)


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
    for name, section in content.items():
        if not isinstance(section, dict):
            raise InvalidInputError(
                f"{path}: {name}", f"must be a section [{name}]", f"it is {section!r}"
            )
    scaling = content.get("scaling", {})
    _refuse_unknown(scaling, ("method", "clip"), f"{path}: keys of [scaling]")
    model = dict(content.get("model", {}))
    settings = FitSettings(
        data=_read_data(content.get("data", {}), path),
        scaling=_typed(scaling, "method", str, FitSettings.scaling),
        clip=_typed(scaling, "clip", bool, FitSettings.clip),
        estimator=_typed(model, "estimator", str, FitSettings.estimator),
        fault=_typed(content.get("data", {}), "fault", str, "") or None,
    )
    model.pop("estimator", None)
    return settings.with_params({name: read_value(value) for name, value in model.items()})


def read_value(value: Any) -> Any:
    """A parameter as estimators take it: a pair of bounds is a tuple."""
    return tuple(value) if isinstance(value, list) and len(value) == 2 else value


def _read_data(section: Mapping[str, Any], path: Path) -> DataSettings:
    _refuse_unknown(section, _DATA_KEYS, f"{path}: keys of [data]")
    home = path.parent
    files = _typed(section, "files", list, [])
    folder = _typed(section, "folder", str, "")
    clients = _typed(section, "clients", dict, {})
    contract = _typed(section, "contract", str, "")
    ignore = _typed(section, "ignore", list, [])
    texts = [*files, *clients.values(), *ignore]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidInputError(f"{path}: [data]", "files and columns must be text", "some are not")
    return DataSettings(
        paths=tuple(home / name for name in [*files, *([folder] if folder else [])]),
        named={name: home / file for name, file in clients.items()},
        label=_typed(section, "label", str, DataSettings.label),
        client_column=_typed(section, "client_column", str, "") or None,
        ignore=tuple(ignore),
        contract=home / contract if contract else None,
        clip=_typed(section, "clip", bool, DataSettings.clip),
    )


def _typed(section: Mapping[str, Any], key: str, wanted: type, default: Any) -> Any:
    value = section.get(key, default)
    if type(value) is not wanted:
        raise InvalidInputError(key, f"must be of type {wanted.__name__}", f"it is {value!r}")
    return value


def _refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    allowed = list(known)
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise InvalidInputError(
            what, f"must be among {', '.join(allowed)}", f"unknown: {', '.join(unknown)}"
        )
