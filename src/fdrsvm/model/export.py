"""A model in the languages of other machines: ONNX, structured text and JSON.

Each export says where it comes from: the classes, the names of the features, the certificate, and
the fingerprint of the coefficients.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fdrsvm.core.files import PathLike, write_atomically
from fdrsvm.core.plain_json import encode
from fdrsvm.errors import UnsupportedError
from fdrsvm.model.linear_model import ALARM, LinearModel
from fdrsvm.model.sigmoids import LARGEST_LOG_ODDS, Sigmoid, shared_sigmoids
from fdrsvm.model.structured_text import to_structured_text
from fdrsvm.risk.feature_maps import AdditiveFeatures, Features, FourierFeatures

__all__ = ["to_json", "to_onnx", "to_structured_text", "write_onnx"]

# Of 2022: old enough for the runtimes on gateways, and all that a model needs.
_OPSET = 17
_IR_VERSION = 8
_Steps: TypeAlias = list[tuple[str, str, str, dict[str, int]]]

# Steps of a map: operator, inputs, output and settings. The last one's output are the features.
_CURVES: _Steps = [
    ("Sub", "X low", "above_low", {}),
    ("Div", "above_low width", "shares", {}),
    ("Unsqueeze", "shares last", "by_sensor", {}),
    ("Sub", "by_sensor knots", "rises", {}),
    # Clip takes one pair of ends for all; here the first and the last ramp go on outside.
    ("Max", "rises least", "risen", {}),
    ("Min", "risen most", "cut", {}),
    ("Mul", "cut span", "priced", {}),
    ("Reshape", "priced ramps_shape", "ramps", {}),
]
_SURFACES: _Steps = [
    ("Sub", "by_sensor pair_knots", "pair_rises", {}),
    ("Clip", "pair_rises zero pair_piece", "coarse", {}),
    ("Gather", "coarse firsts", "first", {"axis": 1}),
    ("Gather", "coarse seconds", "second", {"axis": 1}),
    ("Unsqueeze", "first after_piece", "upright", {}),
    ("Unsqueeze", "second last", "across", {}),
    ("Mul", "upright across", "products", {}),
    ("Mul", "products pair_prices", "priced_products", {}),
    ("Reshape", "priced_products products_shape", "surfaces", {}),
    ("Concat", "ramps surfaces", "both", {"axis": 1}),
]
# Runtimes fold a division next to a product of matrices into it, in float32: widths are in the
# directions. Cosines are sines a quarter of a turn on: onnxruntime 1.20 has no Cos in float64.
_WAVES: _Steps = [
    ("Sub", "X low", "above_low", {}),
    ("MatMul", "above_low directions", "turns", {}),
    ("Add", "turns turned_by", "phases", {}),
    ("Sin", "phases", "sines", {}),
]


def to_onnx(model: LinearModel) -> bytes:
    """An ONNX model in float64, which any runtime with opset 17 can run.

    Its input is ``X``, of shape (n_samples, n_features); its outputs are ``score``, as from
    ``decision_function``, and ``label``, as from ``predict``. A model with probabilities also has
    ``probability``, of shape (n_samples, n_classes), in the order of the classes: the shared ones
    (``fdrsvm.model.sigmoids.at_client`` makes them one client's own). ONNX cannot refuse input:
    where X is not finite, neither is ``score``, and label and probability mean nothing.

    Parameters
    ----------
    model : LinearModel
        The model.
    """
    try:
        onnx: Any = importlib.import_module("onnx")
    except ImportError as error:
        raise UnsupportedError(
            f"to_onnx: needs the package onnx ({error}); run pip install 'fdr-svm[onnx]'"
        ) from None
    proto = onnx.helper.make_model(
        _graph(onnx, model),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="fdrsvm",
    )
    content = {
        "classes": model.classes,
        "feature_names": model.feature_names,
        "params": encode(model.params),
        "certificate": encode(model.certificate),
        "gap": encode(model.certificate.get("gap")),
        "threshold": model.threshold,
    }
    if model.features is not None:
        content["features"] = {"kind": model.features.kind, **model.features.settings()}
    if model.alarm_statement is not None:
        content["alarm"] = encode(model.record[ALARM])
    texts = {key: json.dumps(value, allow_nan=False) for key, value in content.items()}
    texts |= {"estimator": model.estimator, "fingerprint": model.fingerprint}
    onnx.helper.set_model_props(proto, texts)
    return bytes(proto.SerializeToString(deterministic=True))


def write_onnx(model: LinearModel, path: PathLike) -> None:
    """Write ``to_onnx(model)``; a write that fails leaves an older file as it was."""
    write_atomically(path, to_onnx(model))


def to_json(model: LinearModel) -> str:
    """All of a model as JSON for people and other programs; ``load_model`` does not read it.

    Floats have all the digits that float64 needs; ``{"$float": "inf"}`` stands for infinity. A
    model with a map has ``features``: its kind, settings and arrays, from which
    :func:`fdrsvm.risk.feature_maps.read_features` makes what ``coef`` weighs.
    """
    content = {
        "estimator": model.estimator,
        "classes": model.classes,
        "feature_names": model.feature_names,
        "coef": model.coef.tolist(),
        "intercept": model.intercept.tolist(),
        "threshold": model.threshold,
        "params": encode(model.params),
        "certificate": encode(model.certificate),
        "fingerprint": model.fingerprint,
    }
    if model.features is not None:
        arrays = {name: array.tolist() for name, array in model.features.arrays().items()}
        content["features"] = {"kind": model.features.kind, **model.features.settings(), **arrays}
    if model.record:
        content["record"] = encode(model.record)
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _graph(onnx: Any, model: LinearModel) -> Any:
    types, info = onnx.TensorProto, onnx.helper.make_tensor_value_info
    kinds = {str: types.STRING, int: types.INT64, float: types.DOUBLE, bool: types.BOOL}
    kind = int(kinds[type(model.classes[0])])
    width = [] if len(model.classes) == 2 else [len(model.classes)]
    inputs = [info("X", types.DOUBLE, ["n_samples", model.n_features])]
    outputs = [
        info("score", types.DOUBLE, ["n_samples", *width]),
        info("label", kind, ["n_samples"]),
    ]
    nodes, constants = _nodes(onnx, model), _constants(onnx, model, kind)
    if model.features is not None:
        of_map, stored = _map_parts(onnx, model.features)
        nodes, constants = of_map + nodes, constants + stored
    sigmoids = shared_sigmoids(model)
    if sigmoids:
        outputs.append(info("probability", types.DOUBLE, ["n_samples", len(model.classes)]))
        chances, stored = _probability_parts(onnx, len(model.classes), sigmoids)
        nodes, constants = nodes + chances, constants + stored
    return onnx.helper.make_graph(nodes, "fdrsvm", inputs, outputs, constants)


def _nodes(onnx: Any, model: LinearModel) -> list[Any]:
    node = onnx.helper.make_node
    weighed = "X" if model.features is None else "features"
    product = node("MatMul", [weighed, "coef"], ["product"])
    label = node("Gather", ["classes", "index"], ["label"])
    if len(model.classes) > 2:
        scores = node("Add", ["product", "intercept"], ["score"])
        index = node("ArgMax", ["score"], ["index"], axis=1, keepdims=0)
        return [product, scores, index, label]
    return [
        product,
        node("Add", ["product", "intercept"], ["column"]),
        node("Squeeze", ["column", "columns"], ["score"]),
        node("Greater", ["score", "threshold"], ["positive"]),
        node("Cast", ["positive"], ["index"], to=onnx.TensorProto.INT64),
        label,
    ]


def _map_parts(onnx: Any, features: Features) -> tuple[list[Any], list[Any]]:
    """Nodes and constants of what coefficients weigh; of waves a step is in the coefficients."""
    arrays: dict[str, Any] = {"low": features.low}
    if isinstance(features, FourierFeatures):
        steps, directions = _WAVES, (features.frequencies / features.width).T
        arrays["directions"] = np.concatenate([directions, directions], axis=1)
        arrays["turned_by"] = np.repeat([np.pi / 2.0, 0.0], len(features.frequencies))
    elif isinstance(features, AdditiveFeatures):
        steps, k, m = list(_CURVES), features.n_knots, features.pair_knots
        least, most = np.zeros(k), np.full(k, 1.0 / k)
        least[0], most[-1] = -np.inf, np.inf
        arrays |= {"knots": np.arange(k) / k, "least": least, "most": most}
        arrays |= {"width": features.width, "span": features.span[:, None]}
        # A reshape leaves a 0 as it is: the number of rows.
        arrays |= {"last": np.array([2]), "ramps_shape": np.array([0, features.n_sensors * k])}
        if features.pairs:
            steps += _SURFACES
            firsts, seconds = features.pair_places
            arrays |= {"firsts": firsts, "seconds": seconds, "after_piece": np.array([3])}
            arrays |= {"pair_knots": np.arange(m) / m, "pair_piece": np.array(1.0 / m)}
            arrays |= {"zero": np.array(0.0), "pair_prices": features.pair_prices[:, None, None]}
            arrays |= {"products_shape": np.array([0, len(features.pairs) * m * m])}
    else:
        raise UnsupportedError(f"to_onnx: a map of kind {features.kind!r} has no form there")
    nodes = [
        onnx.helper.make_node(kind, inputs.split(), [output], **settings)
        for kind, inputs, output, settings in steps
    ]
    nodes[-1].output[0] = "features"
    return nodes, _stored(onnx, arrays)


def _stored(onnx: Any, arrays: Mapping[str, Any]) -> list[Any]:
    return [
        onnx.numpy_helper.from_array(
            array if array.dtype == np.float64 else array.astype(np.int64), name
        )
        for name, array in arrays.items()
    ]


def _constants(onnx: Any, model: LinearModel, kind: int) -> list[Any]:
    waves = model.features if isinstance(model.features, FourierFeatures) else None
    coef = model.coef if waves is None else model.coef * waves.scale
    arrays = {"coef": np.ascontiguousarray(coef.T), "intercept": model.intercept}
    if len(model.classes) == 2:
        arrays |= {"columns": np.array([1]), "threshold": np.array(model.threshold)}
    labels = [x.encode() if isinstance(x, str) else x for x in model.classes]
    return [*_stored(onnx, arrays), onnx.helper.make_tensor("classes", kind, [len(labels)], labels)]


def _probability_parts(
    onnx: Any, n_classes: int, sigmoids: Sequence[Sigmoid]
) -> tuple[list[Any], list[Any]]:
    """1 / (1 + e^-u), with u cut: the sigmoid of a runtime is off where it is small."""
    node = onnx.helper.make_node
    steps = [
        node("Sub", ["column" if n_classes == 2 else "score", "centre"], ["distance"]),
        node("Div", ["distance", "scale"], ["z"]),
        node("Mul", ["z", "slope"], ["steep"]),
        node("Add", ["steep", "log_odds_at_centre"], ["log_odds"]),
        node("Clip", ["log_odds", "lowest", "highest"], ["up"]),
        node("Neg", ["up"], ["down"]),
    ]
    if n_classes == 2:  # the exponents of both classes, side by side
        steps.append(node("Concat", ["up", "down"], ["exponents"], axis=1))
    ratio = "ratio" if n_classes > 2 else "probability"
    steps += [
        node("Exp", ["exponents" if n_classes == 2 else "down"], ["powers"]),
        node("Add", ["powers", "one"], ["inverse"]),
        node("Div", ["one", "inverse"], [ratio]),
    ]
    if n_classes > 2:
        steps.append(node("ReduceSum", ["ratio", "columns"], ["total"], keepdims=1))
        steps.append(node("Div", ["ratio", "total"], ["probability"]))
    arrays = {
        "centre": np.array([one.centre for one in sigmoids]),
        "scale": np.array([one.scale for one in sigmoids]),
        "slope": np.array([one.slope for one in sigmoids]),
        "log_odds_at_centre": np.array([one.intercept for one in sigmoids]),
        "lowest": np.array(-LARGEST_LOG_ODDS),
        "highest": np.array(LARGEST_LOG_ODDS),
        "one": np.array(1.0),
    }
    if len(sigmoids) > 1:
        arrays["columns"] = np.array([1])
    return steps, _stored(onnx, arrays)
