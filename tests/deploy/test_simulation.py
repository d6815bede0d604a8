"""Flower's simulation gives the bits of one process."""

import importlib.util

import pytest

from fdrsvm import FDRSVC
from fdrsvm.deploy.runs import simulate
from tests.deploy.cases import fingerprint, in_process, write_plants

pytestmark = [
    pytest.mark.federation,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="needs the extra `simulation`"
    ),
]


@pytest.mark.parametrize("algorithm", ["bundle", "admm", "subgradient"])
def test_a_simulation_has_the_bits_of_one_process(algorithm, tmp_path, recwarn):
    files = write_plants(tmp_path / "data")
    settings = {"algorithm": algorithm, "max_rounds": 6}
    config = {name.replace("_", "-"): value for name, value in settings.items()}
    simulate(tmp_path / "data", tmp_path / "run", config, timeout=600.0, tell=print)
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files, **settings))
    recwarn.clear()
