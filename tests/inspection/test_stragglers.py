"""A plant that does worse is named, a plant with bad luck is not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from fdrsvm.data.rows import Rows
from fdrsvm.decision.goals import share_limits
from fdrsvm.inspection.scores import score
from fdrsvm.inspection.stragglers import (
    LEVEL,
    is_clearly_below,
    is_hardly_a_guess,
    stragglers,
)
from fdrsvm.model.linear_model import LinearModel


@pytest.mark.parametrize("n", [1, 7, 250])
def test_limits_are_those_of_clopper_and_pearson(n):
    low, high = share_limits(np.arange(n + 1), np.full(n + 1, n), 0.01)
    for k in range(n + 1):
        expected = binomtest(k, n).proportion_ci(0.98, method="exact")
        assert low[k] == pytest.approx(expected.low, abs=1e-9)
        assert high[k] == pytest.approx(expected.high, abs=1e-9)


@pytest.mark.parametrize("truth", [0.02, 0.5, 0.93])
def test_a_limit_is_passed_no_more_often_than_its_level(truth):
    k = np.arange(41)
    low, high = share_limits(k, np.full(41, 40), 0.01)
    chances = binom.pmf(k, 40, truth)
    assert chances[low > truth].sum() <= 0.01
    assert chances[high < truth].sum() <= 0.01


def draw(rng, plants, recalls):
    """Counts of one federation whose plants are all alike."""
    tables = []
    for totals in plants:
        found = rng.binomial(totals, recalls)
        counts = np.diag(found).astype(float)
        counts[0, 1], counts[1, 0] = totals[0] - found[0], totals[1] - found[1]
        tables.append(counts)
    return tables


@pytest.mark.parametrize("recalls", [(0.98, 0.7), (0.8, 0.8), (0.999, 0.3)])
def test_plants_that_are_alike_are_seldom_blamed(recalls):
    """The chance that any is blamed is below LEVEL; 2,000 draws may pass it by 4 deviations."""
    rng = np.random.default_rng(0)
    plants = [(500, 6), (200, 40), (30, 3), (800, 25), (60, 1)]
    n_draws = 2000
    blamed = 0
    for _ in range(n_draws):
        tables = draw(rng, plants, recalls)
        whole = sum(tables)
        blamed += any(is_clearly_below(one, whole - one, LEVEL / 5) for one in tables)
    assert blamed / n_draws <= LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / n_draws)


def test_a_good_model_is_seldom_called_a_guess():
    rng = np.random.default_rng(1)
    blamed = sum(
        is_hardly_a_guess(draw(rng, [(200, 10)], (0.75, 0.6))[0], LEVEL) for _ in range(2000)
    )
    assert blamed / 2000 <= LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / 2000)


def federation(shift=0.0, noise=0.0, n=250, classes=("leak", "ok"), is_turned=False):
    """Four plants whose single reading tells faults; at the last it is off or means nothing."""
    rng = np.random.default_rng(3)
    clients = np.repeat(["p1", "p2", "p3", "p4"], n)
    is_fault = rng.random(4 * n) < 0.3
    x = np.where(is_fault, -1.0, 1.0) + 0.2 * rng.normal(size=4 * n)
    last = clients == "p4"
    x[last] = x[last] * (1.0 - noise) + shift
    if is_turned:
        x[last] *= -1.0
    model = LinearModel.checked(
        [[1.0]], [0.0], classes, estimator="FDRSVC", record={"positive": "leak"}
    )
    return model, Rows(x[:, None], np.where(is_fault, *classes), clients, ("x",))


def said_of(model, rows):
    return stragglers(model, rows, score(model, rows))


def test_a_plant_with_another_zero_point_is_told_to_take_another_threshold():
    model, rows = federation(shift=3.0)
    said = said_of(model, rows)
    assert list(said) == ["p4"]
    assert "at 'p4' the model does clearly worse than at the other plants" in said["p4"]
    assert "balanced accuracy 0.500 against 1.000" in said["p4"]
    cut = float(said["p4"].split("with a threshold of ")[1].split()[0])
    assert 2.0 < cut < 4.0
    mine = rows.of("p4")
    assert np.mean(model.cut_at(cut).predict(mine.X) == mine.y) == 1.0


def test_a_plant_whose_sensor_is_turned_round_is_told_to_look_at_its_columns():
    said = said_of(*federation(is_turned=True))
    assert list(said) == ["p4"]
    assert "compare units, ranges and labels" in said["p4"]


def test_plants_that_are_well_or_small_are_not_named():
    assert said_of(*federation()) == {}
    model, rows = federation(shift=3.0)
    few = np.flatnonzero(rows.clients == "p4")[:3]
    kept = np.concatenate([np.flatnonzero(rows.clients != "p4"), few])
    assert said_of(model, Rows(rows.X[kept], rows.y[kept], rows.clients[kept], ("x",))) == {}


def test_a_difference_that_does_not_matter_is_not_named_however_sure_it_is():
    one = np.array([[9.7e6, 3e5], [0.0, 1e7]])
    other = np.array([[9.9e6, 1e5], [0.0, 1e7]])
    assert not is_clearly_below(one, other)
    assert is_clearly_below(np.array([[8e6, 2e6], [0.0, 1e7]]), other)


def test_a_model_that_guesses_everywhere_is_said_once():
    rng = np.random.default_rng(0)
    model, rows = federation(n=2000)
    coin = Rows(rng.normal(size=rows.X.shape), rows.y, rows.clients, ("x",))
    said = said_of(model, coin)
    assert list(said) == ["all"]
    assert "hardly better than guessing" in said["all"]


def test_a_plant_with_one_class_is_compared_in_that_class_only():
    model, rows = federation(shift=-3.0)  # all of p4 is called a leak
    kept = (rows.clients != "p4") | (rows.y == "ok")
    said = said_of(model, Rows(rows.X[kept], rows.y[kept], rows.clients[kept], ("x",)))
    assert list(said) == ["p4"]


def test_a_single_client_called_as_all_rows_are_is_judged_like_another():
    model, rows = federation()
    for y in (rows.y, np.random.default_rng(3).permutation(rows.y)):
        said = {}
        for name in ("all", "north"):
            one = Rows(rows.X, y, np.full(len(rows.X), name), ("x",))
            said[name] = [text.replace(name, "") for text in said_of(model, one).values()]
        assert said["all"] == said["north"]


def test_other_models_and_a_client_called_all_change_nothing():
    model, rows = federation(shift=3.0)
    own = score(model, rows)
    others = [replace(one, model="local", counts=None, balanced_accuracy=0.0) for one in own]
    assert stragglers(model, rows, own + others) == stragglers(model, rows, own)
    alone = Rows(rows.X, rows.y, np.full(len(rows.X), "all"), ("x",))
    assert said_of(model, alone) == {}  # it is right about three of four plants
