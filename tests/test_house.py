"""The map in CONTRIBUTING.md is true: what a fit and a round visit, and how large the house is."""

import re
from pathlib import Path
from types import SimpleNamespace

from benchmarks.house import Walk, measure_names, one_fit

import fdrsvm
from fdrsvm.deploy import client_app
from fdrsvm.deploy.flower import FlowerTransport
from fdrsvm.deploy.server_side import conduct_run
from fdrsvm.deploy.settings import RunSettings
from tests.deploy.cases import Grid, write_plants

ROOT = Path(__file__).parents[1]
SOURCE = Path(fdrsvm.__file__).parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(title):
    """Paths and names in backticks under a heading of the map."""
    text = CONTRIBUTING.split(f"### {title}\n", 1)[1].split("\n#", 1)[0]
    quoted = re.findall(r"`([^`]+)`", text)
    paths = [entry for entry in quoted if entry.endswith(".py")]
    return paths, [entry for entry in quoted if entry not in paths]


def check_section(title, visited):
    paths, names = section(title)
    assert set(paths) == set(visited.functions)
    functions = {name for each in visited.functions.values() for name in each}
    not_visited = [name for name in names if name not in functions and "." in name]
    assert not not_visited, "the map names functions that are not called"
    known = functions | {name.rpartition(".")[2] for name in functions}
    known |= {name.partition(".")[0] for name in functions}
    classes = set(measure_names(SOURCE).classes)
    assert [name for name in names if name not in known | classes] == []


def test_the_map_of_one_fit_is_true():
    one_fit()  # whatever happens only once
    visited = Walk()
    visited.begin()
    one_fit()
    visited.end()
    check_section("One fit", visited)
    assert len(visited.functions) <= 25
    assert sum(map(len, visited.functions.values())) <= 161


class AppGrid(Grid):
    """Hands messages to the real client app; only Flower's processes and network are left out."""

    def _answer(self, message_id, node, request, message):
        context = SimpleNamespace(node_config=self.nodes[node], run_config={}, node_id=node)
        self.replies[message_id] = client_app.train(message, context)


def run_over_flower(folder, tell):
    nodes = {
        100 + k: {"client-id": name, "data": str(path), "state": str(folder / "state")}
        for k, (name, path) in enumerate(write_plants(folder / "data", 1).items())
    }
    settings = RunSettings.from_config(
        {"output": str(folder / "run"), "deadline": 60.0, "join-deadline": 60.0}
    )

    def connect(audit):
        pace = {"poll": 0.001, "look_around": 0.01}
        return FlowerTransport(AppGrid(nodes), task=settings.task(), listener=audit, **pace)

    conduct_run(connect, settings, tell)


def test_the_map_of_one_round_over_flower_is_true(tmp_path):
    run_over_flower(tmp_path / "first", lambda line: None)
    tour = Walk()

    def tell(line):
        if line.startswith("round 1:"):
            tour.begin()
        if line.startswith("round 2:"):
            tour.end()

    try:
        run_over_flower(tmp_path / "second", tell)
    finally:
        tour.end()
    check_section("One round over Flower", tour)
    assert 10 <= len(tour.functions) <= 40


def test_every_folder_and_every_path_of_the_map_is_there():
    house = CONTRIBUTING.split("## The house on one page", 1)[1].split("\n## ", 1)[0]
    table = house.split("### ", 1)[0]
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    named = set(re.findall(r"`([a-z_]+)`", table))
    assert folders - named == {"leakage"}  # an alias for a documented path
    for path in re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py)?)`", house):
        assert (SOURCE / path).exists() or (ROOT / path).exists(), path


def test_no_name_occurs_twice_and_the_house_stays_small():
    names = measure_names(SOURCE)
    n_lines, n_private, n_used_once = names.n_lines, names.n_private, names.n_used_once
    assert [name for name, count in names.modules.items() if count > 1] == []
    assert [name for name, count in names.classes.items() if count > 1] == []
    # Grown by goals, thresholds, alarms, probabilities, check, files as they come, maps, the
    # bundle's metric, and models of plants' own.
    assert n_lines <= 39_000
    assert n_used_once <= n_private / 3
