"""One folder with data and models for all tests of the program: training them takes longest."""

import pytest

from tests.cli.cases import run, write_clients


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """plants/, three/ (classes), and a model of each that a process trained."""
    folder = tmp_path_factory.mktemp("cli")
    write_clients(folder / "plants")
    write_clients(folder / "three", n_classes=3)
    # The class in the middle is found by none that is less determined.
    three = ("--set", "epsilon=0.002", "--class-weight", "balanced")
    for name, options in (("plants", ("--set", "epsilon=0.02")), ("three", three)):
        done = run("fit", name, "--no-tune", *options, "--output", f"{name}-run", cwd=folder)
        assert done.returncode == 0, done.stderr
        (folder / f"{name}.txt").write_text(done.stdout)
        assert done.stderr == ""
    return folder


@pytest.fixture
def model(home):
    return home / "plants-run" / "model.safetensors"
