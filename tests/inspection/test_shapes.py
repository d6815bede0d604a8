"""What a page says and draws of curves, surfaces and waves is so of the model's scores."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fdrsvm.data.rows import Rows
from fdrsvm.estimators.training import FitSettings, train
from fdrsvm.inspection.charts import Series, heat_chart
from fdrsvm.inspection.page import model_page
from fdrsvm.inspection.rendering import number
from fdrsvm.inspection.shapes import Shapes
from fdrsvm.inspection.summary import sensor_words
from fdrsvm.inspection.terms import changes_alone, surface_heights, term_sizes
from fdrsvm.inspection.verdict import ignores_features
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from tests.browser import NAMES, find_chromium, see

SENSORS = ("Pressure [bar]", "Torque [Nm]", "Speed [rpm]", "Humidity")
LOW, WIDTH = np.array([0.0, 10.0, 500.0, 0.2]), np.array([10.0, 60.0, 2500.0, 0.5])
PHONE, DESKTOP = 390, 1280
MAPS = {
    "additive": AdditiveMap(n_knots=4),
    "additive-pairs": AdditiveMap(n_knots=4, pairs="all"),
    "fourier": FourierMap(n_components=30),
}


def make_rows(n_classes=2, n_rows=160):
    """Off where the pressure is far from 5 bar, or where torque and speed are high together."""
    s = np.random.default_rng(5).random((n_rows, 4))
    off = (np.abs(s[:, 0] - 0.5) > 0.35) | (s[:, 1] + s[:, 2] > 1.5)
    names = np.array(["Fault", "ok"])[(~off).astype(int)]
    if n_classes == 3:
        names[s[:, 1] + s[:, 2] > 1.5] = "Jam"
    return Rows(LOW + WIDTH * s, names, np.repeat(["a", "b"], n_rows // 2), SENSORS)


def make_model(name, n_classes=2):
    params = {"features": MAPS[name], "epsilon": 0.002, "tol": 1e-2}
    return train(FitSettings(params=params, tune=False), make_rows(n_classes)).model


@pytest.fixture(scope="module")
def models():
    return {name: make_model(name) for name in MAPS}


@pytest.mark.parametrize("name", ["additive", "additive-pairs"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_curve_is_how_the_score_changes_while_its_sensor_moves_alone(models, name, place):
    """The others at their lower limits, where surfaces are flat: the least of the rows."""
    model, rows = models[name], make_rows()
    for p in range(len(SENSORS)):
        stops, heights = Shapes(model, rows, place).curve(p)
        assert stops[0] <= rows.X[:, p].min()
        assert stops[-1] >= rows.X[:, p].max()
        X = np.where(np.arange(len(SENSORS)) == p, stops[:, None], rows.X.min(axis=0))
        scores = model.decision_function(X) * (1.0 if place else -1.0)
        assert_allclose(np.diff(heights[:, 0]), np.diff(scores), atol=1e-9)


@pytest.mark.parametrize("name", ["additive", "additive-pairs"])
def test_all_charts_and_a_constant_add_up_to_the_score(models, name):
    model, rows = models[name], make_rows()
    shapes = Shapes(model, rows, 0)
    total = (shapes.shares - shapes.means)[:, :, 0].sum(axis=1)
    constant = -model.decision_function(rows.X).mean()
    assert_allclose(total + constant, -model.decision_function(rows.X), atol=1e-9)
    for p in range(len(SENSORS)):
        stops, heights = shapes.curve(p)
        drawn = np.interp(rows.X[:, p], stops, heights[:, 0])
        assert_allclose(drawn, (shapes.shares - shapes.means)[:, p, 0], atol=1e-9)


def test_a_surface_is_what_both_sensors_add_beyond_each_alone(models):
    model = models["additive-pairs"]
    low, shares = make_rows().X.min(axis=0), np.linspace(0.0, 1.0, 5)
    width = np.ptp(make_rows().X, axis=0)

    def scores(first, second):
        X = np.tile(low, (25, 1))
        X[:, 1] += width[1] * np.repeat(first, 5)
        X[:, 2] += width[2] * np.tile(second, 5)
        return model.decision_function(X).reshape(5, 5)

    none = np.zeros(5)
    alone = scores(shares, none) + scores(none, shares) - scores(none, none)
    heights = surface_heights(model, model.features.pairs.index((1, 2)), shares)
    assert_allclose(heights[:, :, 0], scores(shares, shares) - alone, atol=1e-9)


def test_what_a_sensor_changes_alone_is_counted_again(models):
    model, rows = models["fourier"], make_rows()
    ends = rows.X.min(axis=0), rows.X.max(axis=0)
    for p in range(len(SENSORS)):
        changes = []
        for row in rows.X:
            moved = np.tile(row, (25, 1))
            moved[:, p] = np.linspace(ends[0][p], ends[1][p], 25)
            changes.append(np.ptp(model.decision_function(moved)))
        expected = pytest.approx(np.mean(changes), rel=1e-9)
        assert changes_alone(model, model.features, rows.X)[0, p] == expected
        assert term_sizes(model, rows)[0, p] == expected


def test_words_name_the_readings_that_speak_most_for_the_fault(models):
    model, rows = models["additive"], make_rows()
    first = sensor_words(model, rows, 0)[0]
    assert first.startswith("Pressure [bar]: speaks most for 'Fault' at ")
    most, other, least = map(float, re.findall(r"at (\S+) bar", first))
    assert min(most, other) < 1.5 < 8.5 < max(most, other)  # as the faults were made
    assert abs(least - 5.0) < 3.5
    X = np.tile(rows.X[0], (2, 1))
    X[:, 0] = most, least
    differs = float(re.search(r"differs by ([\d.]+)", first)[1])
    assert -np.diff(-model.decision_function(X))[0] == pytest.approx(differs, rel=0.02)


def test_what_a_sensor_adds_in_alarms_is_the_mean_over_them(models):
    model, rows = models["additive"], make_rows()
    alarms = model.predict(rows.X) == "Fault"
    shapes = Shapes(model, rows, 0)
    adds = shapes.shares[:, 0, 0] - shapes.shares[:, 0, 0].mean()
    drawn = next(one for one in shapes.charts()["curves"] if one["name"] == SENSORS[0])
    assert f"it adds {number(adds[alarms].mean())} on average" in drawn["words"]
    assert f"in the others {number(adds[~alarms].mean())}." in drawn["words"]


def test_the_darkest_cells_are_the_highest_and_lowest():
    surface = np.array([[1.0, -0.5], [0.05, 0.6]])
    chart = heat_chart(
        surface,
        (0.0, 2.0),
        (0.0, 2.0),
        Series("rows", [1.0], [3.0]),
        **dict.fromkeys(("x_label", "y_label", "description"), "d"),
    )
    shades = re.findall(r'class="heat s(\d) o(\d)"', chart)
    assert sorted(shades) == [("0", "2"), ("1", "3"), ("1", "5")]  # 0.05 is no shade of 5
    assert "adds up to 1<" in chart
    assert "takes up to 0.5<" in chart
    assert "<circle" not in chart  # beyond the ranges


@pytest.mark.parametrize("name", list(MAPS))
@pytest.mark.parametrize("has_rows", [True, False])
def test_every_map_has_a_page(models, name, has_rows):
    page = model_page(models[name], make_rows() if has_rows else None)
    assert "How much the score changes if one feature moves by" not in page
    assert ("What each sensor adds" in page) == (name != "fourier")
    assert ("What pairs of sensors add together" in page) == (name == "additive-pairs")
    assert ("no part of the score belongs to one of them" in page) == (name == "fourier")
    assert "No other linear model" not in page
    if has_rows:
        assert "is at most this" in page
        assert "exact, not sampled" not in page
        searched = "These moves were searched for and tried" in page
        assert searched == (name != "additive")


def test_what_is_left_out_is_counted():
    features = AdditiveMap(n_knots=2, pairs="all").over(25)
    coef = np.random.default_rng(0).normal(size=(1, features.n_outputs))
    model = LinearModel.checked(coef, [0.0], ("a", "b"), estimator="other", features=features)
    page = model_page(model)
    assert "Curves left out: 5, of less importance." in page
    assert "Surfaces left out: 294, of less importance." in page  # of 300


def test_three_classes_share_their_charts():
    model, rows = make_model("additive-pairs", 3), make_rows(3)
    page = model_page(model, rows)
    assert re.findall("<h3>Class (.*?)</h3>", page) == ["Fault", "Jam", "ok"]
    assert page.count('aria-label="what ') == 4
    assert "Surfaces left out: 6; they are drawn for two classes only." in page


@pytest.mark.parametrize("name", list(MAPS))
def test_a_map_without_weights_is_said_to_ignore_the_sensors(models, name):
    model, rows = models[name], make_rows()
    assert not ignores_features(model, rows)
    assert not ignores_features(model)
    flat = LinearModel.checked(**{**vars(model), "coef": 1e-6 * model.coef})
    assert ignores_features(flat, rows)
    assert ignores_features(flat)
    assert "No feature matters" in model_page(flat, rows)


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("name", ["additive-pairs", "fourier"])
def test_a_browser_draws_it_without_a_complaint(models, name, tmp_path, width):
    browser = find_chromium()
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, $CHROMIUM is not set")
    page = model_page(models[name], make_rows())
    seen = see(browser, page, tmp_path, width)
    assert seen.faults == seen.crowded == []
    assert len(seen.svgs) == page.count("<svg ")
