"""A model file whose record has an entry of a wrong kind is refused, and every entry is read."""

from dataclasses import replace

import pytest

from fdrsvm import CorruptDataError
from fdrsvm.core.plain_json import plain
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.model.record_kinds import check_record
from tests.estimators.models import make_model

HISTORY = {"round": [1, 2], "objective": [1.0, 0.5], "lower_bound": [0.0, 0.4], "gap": [1.0, 0.2]}
RIGHT = {
    "data": {"rows": {"north": 40}, "epsilon": {"north": 0.1}, "columns": {"label": "y"}},
    "history": HISTORY,
    "tuning": {"goal": "balanced accuracy", "label_noise": 0.0, "more": [None]},
    "alarm": {"rate": 0.01, "statement": "In words."},
    "verdict": "the model never predicts 'fault'",
    "anything": [1, {"else": None}],
}
WRONG = [
    *({name: value} for name in RIGHT if name != "anything" for value in (None, 1.5, [1], True)),
    *({"data": {"rows": value}} for value in (None, [1], {"north": [1]}, {"north": -1})),
    {"data": {"epsilon": {"north": "0.1"}}},
    *({"tuning": {"label_noise": value}} for value in ("0.1", True, [0.1], None)),
    {"tuning": {"goal": 3}},
    {"alarm": {"rate": "0.01"}},
    {"alarm": {"statement": ["a"]}},
    *({"history": {**HISTORY, "gap": value}} for value in (None, 0.1, ["a"], [0.1])),
    {"history": {"round": [1, 2]}},
]


def test_what_training_writes_is_read(rng, tmp_path):
    for record in (RIGHT, {}):
        model = replace(make_model(rng), record=dict(plain(record, "record")))
        save_model(model, tmp_path / "m.safetensors")
        assert load_model(tmp_path / "m.safetensors").record == model.record


@pytest.mark.parametrize("record", WRONG, ids=str)
def test_an_entry_of_a_wrong_kind_is_refused_with_the_file(record, rng, tmp_path):
    with pytest.raises(CorruptDataError, match=r"record: .* (of another kind|of unlike length)"):
        check_record(record)
    model = replace(make_model(rng), record=dict(plain(record, "record")))
    path = tmp_path / "m.safetensors"
    save_model(model, path)
    with pytest.raises(CorruptDataError, match=path.name):
        load_model(path)
