"""A model's page: what it says is what was computed, and a real browser draws it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from fdrsvm import flipping_perturbation, worst_case_distribution
from fdrsvm.data.rows import Rows
from fdrsvm.estimators.training import FitSettings, train
from fdrsvm.inspection.certifying import recompute
from fdrsvm.inspection.charts import Series, line_chart, nice_ticks
from fdrsvm.inspection.page import model_page
from fdrsvm.inspection.rendering import number
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.unscaling import Scaling
from tests.browser import NAMES, find_chromium, see
from tests.estimators.imbalanced import make_faults

PHONE, DESKTOP = 390, 1280
HOSTILE = "<script>alert('x')</script>"


def make_rows(n_classes=2):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5)) * [1.0, 20.0, 0.3, 5.0, 1.0] + [0.0, 100.0, 3.0, -50.0, 0.0]
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -1.0, 0.5, 0.0, 0.2]
    codes = np.digitize(score + 0.3 * rng.normal(size=60), [0.0] if n_classes == 2 else [-0.5, 0.5])
    names = ("flow", "a name that is much longer than it should be", HOSTILE, "p", "q")
    return Rows(X, np.array(["good", "bad", "worn"])[codes], np.repeat(["a", HOSTILE], 30), names)


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def model(rows):
    return train(FitSettings(params={"epsilon": 0.02, "kappa": 0.5}, tune=False), rows).model


@pytest.fixture(scope="module")
def page(model, rows):
    return model_page(model, rows, name="leak", sample=5)


class Balanced(HTMLParser):
    """Counts what is open."""

    void = ("meta", "link", "br", "path", "circle")

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_holds_no_script_and_no_address(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "script" not in parser.tags
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:|//)""", page)
    assert "prefers-color-scheme: dark" in page


def test_its_numbers_are_those_computed(page, model, rows):
    for one in recompute(model, rows).risks:
        assert f"<td>{number(one.worst_case)}</td>" in page
        assert f"<td>{number(one.mean_loss)}</td>" in page
    scaling = Scaling.of(model)
    X = scaling.apply(rows.X)
    turn = flipping_perturbation(scaling.unfold(model), X, norm="linf")
    assert f"A move by {number(turn.cost[5])}" in page
    after = scaling.undo(turn.points[[5]])[0]
    assert f"<td>{number(after[0])}</td>" in page
    assert np.abs(model.decision_function(after[None])).max() < 1e-9  # there the classes tie
    weights = model.coef[0] * rows.X.std(axis=0)
    for weight in weights:
        assert f'<span class="value">{number(weight)}</span>' in page
    assert len(re.findall("<svg ", page)) == 6


def test_the_worst_case_is_the_distribution_that_attains_the_risk(page, model, rows):
    scaling = Scaling.of(model)
    scaled, X = scaling.unfold(model), scaling.apply(rows.X)
    w, b = scaled.coef[0], float(scaled.intercept[0])
    counts = np.zeros(3, dtype=int)
    for client in rows.client_names:
        mine = rows.clients == client
        signs = np.where(rows.y[mine] == "good", 1.0, -1.0)
        box = (X.min(axis=0), X.max(axis=0))
        ball = {"epsilon": 0.02, "kappa": 0.5, "support": box, "intercept": b}
        worst = worst_case_distribution(w, X[mine], signs, **ball)
        is_wrong = worst.labels != signs[worst.source_index]
        is_moved = (worst.points != X[mine][worst.source_index]).any(axis=1) & ~is_wrong
        counts += [np.sum(~is_wrong & ~is_moved), np.sum(is_moved), np.sum(is_wrong)]
    stay, move, wrong = counts
    said = " ".join(page.split())
    assert f"{stay} stay, {move} are moved and {wrong} have another label" in said
    assert move + wrong > 0


def test_one_rows_worst_case_is_told_and_drawn_as_it_is(model, rows):
    scaling = Scaling.of(model)
    scaled, X = scaling.unfold(model), scaling.apply(rows.X)
    box = (X.min(axis=0), X.max(axis=0))
    deeds = set()
    for client in rows.client_names:
        mine = np.flatnonzero(rows.clients == client)
        signs = np.where(rows.y[mine] == "good", 1.0, -1.0)
        ball = {"epsilon": 0.02, "kappa": 0.5, "support": box}
        b = float(scaled.intercept[0])
        worst = worst_case_distribution(scaled.coef[0], X[mine], signs, intercept=b, **ball)
        for place, sample in enumerate(mine.tolist()):
            atoms = worst.source_index == place
            is_wrong = worst.labels[atoms] != signs[place]
            is_away = (worst.points[atoms] != X[sample]).any(axis=1)
            if not (is_wrong | is_away).any() and "stays" in deeds:
                continue  # one page of a row that stays is enough
            said = model_page(model, rows, sample=sample).split("One row, explained")[1]
            found = {"moves": (is_away & ~is_wrong).any(), "gets another label": is_wrong.any()}
            found["stays"] = (~is_away & ~is_wrong).any()
            for deed, is_so in found.items():
                assert (f"% {deed}" in said) == is_so
            assert ("in the worst case</span>" in said) == is_away.any()
            deeds |= {deed for deed, is_so in found.items() if is_so}
    assert deeds >= {"stays", "moves"}


def test_the_file_alone_makes_a_page_too(model):
    page = model_page(model)
    assert "Risk per client" in page
    assert "One row, explained" not in page
    assert page.count("<svg ") == 2


def test_a_model_that_kept_nothing_makes_a_page_too(rows):
    bare = LinearModel.checked(
        np.ones((1, 5)), [0.5], ("bad", "good"), estimator="other", feature_names=rows.feature_names
    )
    page = model_page(bare, rows)
    assert "The file keeps no rounds" in page
    assert "no certificate" in page


@pytest.mark.parametrize("estimator", ["DRSVC", "FedSVC", "FDRSVC"])
def test_every_estimator_has_a_page(rows, estimator):
    params = {"FedSVC": {"max_rounds": 3}, "FDRSVC": {"support": "unit-box"}}.get(estimator, {})
    trained = train(FitSettings(estimator=estimator, params=params), rows).model
    assert "One row, explained" in model_page(trained, rows)


def test_three_classes_have_their_features_each():
    rows = make_rows(3)
    model = train(FitSettings(params={"epsilon": 0.02}), rows).model
    page = model_page(model, rows)
    assert re.findall("<h3>Class (.*?)</h3>", page) == ["bad", "good", "worn"]


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_browser_draws_it_without_a_complaint(page, tmp_path, width):
    browser = find_chromium()
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, $CHROMIUM is not set")
    seen = see(browser, page, tmp_path, width)
    assert seen.faults == seen.crowded == []
    assert seen.width == width
    assert len(seen.svgs) == page.count("<svg ")


@pytest.mark.parametrize("low", [0.0, -3.0, 1e-9, 1e6])
@pytest.mark.parametrize("width", [1e-9, 0.03, 1.0, 7e5])
def test_ticks_are_round_few_and_within(low, width):
    ticks = nice_ticks(low, low + width)
    assert 2 <= len(ticks) <= 7
    step = ticks[1] - ticks[0]
    assert all(low - 1e-6 * step <= tick <= low + width + 1e-6 * step for tick in ticks)


def test_a_curve_has_a_gap_where_there_is_no_number():
    line = Series("a", [0.0, 1.0, 2.0, 3.0], [1.0, float("inf"), 2.0, 3.0])
    chart = line_chart([line], x_label="x", y_label="y", description="d")
    (path,) = re.findall(r'class="line s0" d="([^"]*)"', chart)
    assert path.count("M") == 2
    assert path.count("L") == 1
    nothing = Series("a", [0.0], [0.0])
    assert "nothing to draw" in line_chart(
        [nothing], x_label="x", y_label="y", description="d", log_y=True
    )


# --- a model that finds nothing ---


def faults():
    X, y, plants = make_faults(n_rows=400, n_features=5)
    names = ("flow", "pressure", "speed [rpm]", "p", "q")
    return Rows(X * [1.0, 20.0, 1700.0, 5.0, 1.0] + 3.0, y, plants, names)


@pytest.mark.parametrize(
    "params", [{}, {"tol": 1e-6}, {"epsilon": 0.6}, {"epsilon": 0.0}, {"support": "unit-box"}]
)
def test_no_page_computes_with_weights_that_are_zero(params):
    rows = faults()
    training = train(FitSettings(params=params, tune=False), rows)
    assert training.verdict is not None
    for given in (rows, None):
        page = model_page(training.model, given)
        assert '<p class="verdict">Warning: the model never predicts' in page
        assert "No feature matters" in page
        assert "rpm" not in page  # neither bars nor moves
        assert not re.search(r"\de\+\d", page)


def test_the_page_names_the_class_that_f1_is_of():
    rows = faults()
    model = train(FitSettings(params={"class_weight": "balanced"}), rows).model
    page = model_page(model, rows)
    assert "verdict" not in page.split("</style>")[1]
    assert "F1 of &#39;Fault&#39;" in page
    assert "F1 of &#39;ok&#39;" in model_page(model, rows, fault="ok")
    assert "speed [rpm]" in page
