"""Who was left out of a run: the file, its certificate, `certify` and the page say it."""

import json
import warnings

import numpy as np

from fdrsvm import FDRSVC, LeftOutWarning
from fdrsvm.cli import main
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.estimators.training import certificate_content
from fdrsvm.federated import Bundle, InProcess, run_rounds
from fdrsvm.inspection.certifying import in_words
from fdrsvm.inspection.page import model_page
from tests.federated.cases import Tampered, blobs, gone, problems


def fitted(*, left_out: bool) -> FDRSVC:
    """A model of a run whose second client is never there, or always."""
    rounds = range(1, 999) if left_out else ()
    transport = Tampered(InProcess(problems(blobs(4))), "client-1", gone, rounds=rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = run_rounds(transport, Bundle(), on_fault="drop", max_rounds=60)
    model = FDRSVC(fit_intercept=False)
    model.n_features_in_ = 4
    names = np.array([f"client-{g}" for g in range(4)])
    model._set_result(result, np.array(["bad", "good"]), names)
    return model


def test_the_file_keeps_it_and_the_words_say_it(tmp_path, capsys):
    model = fitted(left_out=True)
    assert model.left_out_ == {"client-1": 3}
    model.save(tmp_path / "model.safetensors")
    loaded = FDRSVC.load(tmp_path / "model.safetensors")
    assert loaded.left_out_ == {"client-1": 3}
    linear = loaded._linear_model()
    said = "The run went on without client-1 (after round 3)"
    assert in_words(linear)[0].startswith(said)
    assert said in model_page(linear)
    assert json.loads(json.dumps(certificate_content(linear)))["left_out"]
    assert main(["certify", str(tmp_path / "model.safetensors")]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_of_a_whole_federation_nothing_is_said():
    model = fitted(left_out=False)
    assert not hasattr(model, "left_out_")
    assert not any("went on without" in text for text in in_words(model._linear_model()))


def test_a_later_fit_forgets_it():
    model = fitted(left_out=True)
    X, y = np.array([[0.0], [1.0], [0.2], [0.9]]), [0, 1, 0, 1]
    model.fit(X, y, clients=["a", "a", "b", "b"])
    assert not hasattr(model, "left_out_")
