"""Model files: one safetensors container each, checked bit by bit when it is read.

Nothing in a model file can run, and bytes that ``save_model`` would not have written are refused:
whoever loads a model has the numbers that were saved, or an error that names the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fdrsvm.core.arrays import Array
from fdrsvm.core.codec import pack, unpack
from fdrsvm.core.files import PathLike, read_capped, write_atomically
from fdrsvm.core.plain_json import decode, encode
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.record_kinds import check_record
from fdrsvm.risk.feature_maps import Features, read_features

_KIND = "model"
_FIRST = b"{"  # of the header, after its length
_VERSION = 1
_THRESHOLD = "decision_function_threshold"
_FEATURES = "features"
_FIELDS = ("classes", "feature_names", "estimator", "params", "certificate")
# 32 million coefficients. More is not a model of ours, and must not fill a gateway's memory.
_MAX_BYTES = 1 << 28


def save_model(model: LinearModel, path: PathLike) -> None:
    """Write a model; a write that fails or is cut off leaves an older file as it was.

    Parameters
    ----------
    model : LinearModel
        From an estimator or from ``LinearModel.checked``.
    path : path
        Its folder must exist. Any suffix will do; ``.safetensors`` tells other tools what it is.
    """
    write_atomically(path, model_bytes(model))


def model_bytes(model: LinearModel) -> bytes:
    """What ``save_model`` writes, for those who write other files with it."""
    data = _pack_model(model)
    if len(data) > _MAX_BYTES:
        raise InvalidInputError(
            "model", f"must take at most {_MAX_BYTES} bytes", f"it takes {len(data)}"
        )
    return data


def load_model(path: PathLike) -> LinearModel:
    """Read a model that ``save_model`` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CorruptDataError
        If the file was cut or altered, is too large, or is of another kind or a newer version.
    """
    try:
        if os.path.isdir(path):
            raise CorruptDataError(f"{_KIND}: a folder; give the model.safetensors in it")
        data = read_capped(path, _MAX_BYTES)
        if data[8:9] != _FIRST:  # a table or a report, given in place of the model
            raise CorruptDataError(
                f"{_KIND}: not a file of this package; give the model.safetensors that fdrsvm fit "
                "wrote, or the file that save() wrote"
            )
        header, arrays = unpack(data, _KIND, _VERSION, max_bytes=_MAX_BYTES)
        model = LinearModel.checked(
            arrays["coef"],
            arrays["intercept"],
            header["classes"],
            estimator=header["estimator"],
            feature_names=header["feature_names"],
            params=decode(header["params"], "params"),
            certificate=decode(header["certificate"], "certificate"),
            record=decode(header.get("record", {}), "record"),
            threshold=header.get(_THRESHOLD, 0.0),
            features=_read_features(header, arrays),
        )
        # Catches all that the checks let pass: other types, spare fields, a model from elsewhere.
        if _pack_model(model) != data:
            raise CorruptDataError(f"{_KIND}: its content is not what this package writes")
        check_record(model.record)
    except KeyError as error:
        raise CorruptDataError(f"{os.fspath(path)}: {_KIND}: {error} is missing") from None
    except (CorruptDataError, InvalidInputError) as error:
        raise CorruptDataError(f"{os.fspath(path)}: {error}") from None
    return model


def _pack_model(model: LinearModel) -> bytes:
    header: dict[str, Any] = {name: getattr(model, name) for name in _FIELDS}
    for name in ("params", "certificate"):
        header[name] = encode(header[name])
    if model.record:  # files of the first release have none
        header["record"] = encode(model.record)
    if model.threshold:
        header[_THRESHOLD] = model.threshold
    arrays = {"coef": model.coef, "intercept": model.intercept}
    if model.features is not None:
        header[_FEATURES] = {"kind": model.features.kind, **model.features.settings()}
        made = model.features.arrays()
        arrays |= {f"{_FEATURES}.{name}": array for name, array in made.items()}
    return pack(_KIND, _VERSION, header, arrays)


def _read_features(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Features | None:
    """What the model is linear in, if that is not the sensors."""
    if _FEATURES not in header:
        return None
    if not isinstance(header[_FEATURES], dict):
        raise CorruptDataError(f"{_KIND}: {_FEATURES!r} is of another kind")
    settings, prefix = dict(header[_FEATURES]), f"{_FEATURES}."
    own = {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    return read_features(settings.pop("kind"), settings, own)
