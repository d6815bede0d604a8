"""What a page says first is counted again here, from the same rows."""

import re

import numpy as np
import pytest
from scipy.stats import binomtest

from fdrsvm.data.rows import Rows
from fdrsvm.errors import InvalidInputError
from fdrsvm.inspection.page import model_page
from fdrsvm.inspection.scores import score
from fdrsvm.inspection.summary import (
    RowRate,
    alarm_words,
    finding_words,
    joining_words,
    plant_lines,
    rounded,
    sensor_words,
)
from fdrsvm.model.linear_model import LinearModel

NAMES = ("Torque [Nm]", "Rotational speed [rpm]", "humidity", "vibration (mm/s)")


def make_model(classes=("Fault", "ok"), positive="Fault", **options):
    return LinearModel.checked(
        [[-2.0, 0.01, 0.0, 0.3]],
        [0.0],
        classes,
        estimator="FDRSVC",
        feature_names=NAMES,
        params={"epsilon": 0.1, "kappa": 1.0, "norm": "linf"},
        record={"positive": positive},
        **options,
    )


def make_rows(model, n_rows=400):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n_rows, 4)) * [1.0, 50.0, 1.0, 2.0]
    wrong = rng.random(n_rows) < 0.1
    y = np.where(wrong, rng.choice(np.array(model.classes), n_rows), model.predict(X))
    return Rows(X, y, np.repeat(["north", "south"], n_rows // 2), NAMES)


@pytest.mark.parametrize(
    ("text", "per_week"),
    [
        ("1 min", 10080.0),
        ("30s", 20160.0),
        ("0.5 h", 336.0),
        ("1 day", 7.0),
        ("2 days", 3.5),
        (" 10 MIN ", 1008.0),
    ],
)
def test_a_rate_is_read_as_it_is_said(text, per_week):
    assert RowRate.parse(text, "--row-every").per_week == pytest.approx(per_week, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "min", "0 s", "-1 min", "1", "1 week", "1.2.3 s", "nan s", "1e99 s", "1 min 2"]
)
def test_a_rate_that_is_none_is_refused_with_an_example(text):
    with pytest.raises(InvalidInputError, match=r"a number above 0 and a unit .*such as '1 min'"):
        RowRate.parse(text, "--row-every")


def test_faults_found_and_false_alarms_are_counted_with_limits():
    model = make_model()
    rows = make_rows(model)
    one = score(model, rows)[-1]
    is_fault, guess = rows.y == "Fault", model.predict(rows.X) == "Fault"
    n_found, n_faults = (is_fault & guess).sum(), is_fault.sum()
    words = " ".join(finding_words(one))
    assert f"finds {n_found} of {n_faults} rows that are 'Fault'" in words
    limits = binomtest(n_found, n_faults).proportion_ci(0.95)
    assert f"confidence {100 * limits.low:.1f} % to {100 * limits.high:.1f} %" in words
    assert f"Of {guess.sum()} alarms {n_found} are right" in words
    n_false, n_healthy = (~is_fault & guess).sum(), (~is_fault).sum()
    said = alarm_words(one, None)
    assert f"{n_false} of {n_healthy} healthy rows ('ok') set off an alarm" in said[0]
    assert f"{1000 * n_false / n_healthy:.3g} in 1000" in said[0]
    assert '--row-every "1 min"' in said[1]
    told = alarm_words(one, RowRate.parse("1 min", "x"))[1].split("about ")[1].split()[0]
    weekly = float(told.replace(",", ""))
    assert weekly == pytest.approx(10080 * n_false / n_healthy, rel=5e-3)  # three digits


def test_people_count_without_powers_of_ten():
    assert [rounded(value) for value in (0.0, 0.1234, 999.6, 85123.0, 3e6)] == [
        "0",
        "0.123",
        "1,000",
        "85,100",
        "3,000,000",
    ]


def test_nothing_is_said_of_classes_that_are_not_there():
    model = make_model()
    rows = make_rows(model)
    healthy = rows.y == "ok"
    kept = Rows(rows.X[healthy], rows.y[healthy], rows.clients[healthy], NAMES)
    assert "nobody can say" in finding_words(score(model, kept)[-1])[0]
    faults = Rows(rows.X[~healthy], rows.y[~healthy], rows.clients[~healthy], NAMES)
    assert "nobody can say" in alarm_words(score(model, faults)[-1], None)[0]


@pytest.mark.parametrize(
    ("classes", "positive", "direction"),
    [(("Fault", "ok"), "Fault", "high"), (("Fault", "ok"), "ok", "low"), (("ok", "x"), "x", "low")],
)
def test_sensors_point_to_the_fault_and_have_their_unit(classes, positive, direction):
    model = make_model(classes, positive)
    rows = make_rows(model)
    first, *others = sensor_words(model, rows, classes.index(positive))
    assert first.startswith(f"Torque [Nm]: {direction} values mean {positive!r} (")
    spread = rows.X.std(axis=0)
    assert f"({spread[0]:.4g} Nm, one standard deviation in these data" in first
    assert f"moves the score by {2.0 * spread[0]:.4g})" in first
    assert others[0].startswith("vibration (mm/s): ")
    assert f"({spread[3]:.4g} mm/s," in others[0]
    assert not any("humidity" in each for each in (first, *others))  # it has no weight
    # Raising it brings the score closer to the fault indeed.
    moved = rows.X + np.array([1.0 if direction == "high" else -1.0, 0.0, 0.0, 0.0])
    step = model.decision_function(moved) - model.decision_function(rows.X)
    assert ((step > 0.0) == (classes.index(positive) == 1)).all()


def plants_alone(model, rows):
    """North has the model itself alone, south one that is wrong about everything."""
    turned = LinearModel.checked(
        -model.coef, [0.0], model.classes, estimator="FDRSVC", record=model.record
    )
    alone = [*score(model, rows.of("north")), *score(turned, rows.of("south"))]
    return [type(one)(**{**vars(one), "model": "local"}) for one in alone]


def test_a_plant_gains_only_if_chance_does_not_explain_it():
    model = make_model()
    rows = make_rows(model)
    joined, others = score(model, rows), plants_alone(model, rows)
    lines = plant_lines(joined, others, None)
    points = 100.0 * (joined[1].balanced_accuracy - others[1].balanced_accuracy)
    assert [line.joining for line in lines] == ["+0.0, not clear", f"gains {points:.1f} points"]
    (said,) = joining_words(model, lines, is_compared=True)
    assert said == "Clearly better with this model than alone: south."
    assert "--compare" in joining_words(model, plant_lines(joined, [], None), is_compared=False)[0]


def test_the_table_of_plants_says_in_what_it_gains():
    model = make_model()
    rows = make_rows(model)
    page = model_page(model, rows, others=plants_alone(model, rows))
    table = page.split("</thead>")[0].split("<thead>")[1]
    assert re.findall("<th>(.*?)</th>", table)[-3:] == [
        "balanced accuracy",
        "alone",
        "points gained by joining",
    ]
    assert "<th>'Fault' found</th>" in table
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    gains = [re.findall("<td[^>]*>(.*?)</td>", line)[-3:] for line in body.strip().splitlines()]
    for together, alone, gain in gains:
        # The shares have three digits, so that their difference is off by one of them at most.
        points = 100.0 * (float(together) - float(alone))
        sign = -1.0 if gain.startswith("loses") else 1.0
        said = sign * float(re.search(r"[-+]?\d+\.\d", gain)[0])
        assert abs(said - points) <= 0.1 + 0.05 + 1e-9
    assert "A point is 0.01 of balanced accuracy." in page
    assert "A point is" not in model_page(model, rows)


def test_the_page_opens_in_this_order():
    model = make_model()
    rows = make_rows(model)
    page = model_page(model, rows, every=RowRate.parse("10 min", "x"))
    short = page.split('<section class="short">')[1].split("</section>")[0]
    assert re.findall("<h3>(.*?)</h3>", short) == [
        "Does it find faults?",
        "How many false alarms?",
        "Which plant gains by joining?",
        "Which sensors matter?",
        "What is proved?",
    ]
    assert "false alarms a week" in short
    assert "Torque [Nm]: high values mean &#39;Fault&#39;" in short
    assert "<th>fault class</th>" in page
    assert "goal: not tuned" in page


def test_the_page_says_what_the_file_says_of_alarms_probabilities_and_tuning():
    kept = {
        "alarm": {"rate": 0.01, "statement": "one in a hundred healthy rows"},
        "probabilities": {"method": "sigmoid"},
        "tuning": {"goal": "balanced accuracy", "score": 0.81, "label_noise": 0.0},
    }
    page = model_page(make_model(threshold=0.3).with_record(**kept))
    assert "Alarm: one in a hundred healthy rows." in page
    assert "Probabilities: the file also turns scores into probabilities." in page
    assert "for balanced accuracy, by cross-validation, which reached 0.81." in page
    assert "0.3, goal: balanced accuracy" in page
    assert "give rows with labels that it was not trained on" in page


def test_a_plant_that_is_served_badly_is_named_before_all_else():
    model = make_model()
    rows = make_rows(model)
    X = rows.X.copy()
    X[rows.clients == "south", 0] += 40.0
    page = model_page(model, Rows(X, rows.y, rows.clients, NAMES))
    short = page.split('<section class="short">')[1]
    assert short.index('<p class="weak">Warning: at &#39;south&#39;') < short.index("<h3>")


@pytest.mark.parametrize("size", [1e-9, 1e-13])
def test_weights_that_hardly_matter_move_no_row_to_the_moon(size):
    """Without scaling nothing tells such weights from large ones but the data."""
    model = LinearModel.checked(
        [[size, -size, size, size]],
        [1.0],
        ("Fault", "ok"),
        estimator="FDRSVC",
        feature_names=NAMES,
        params={"epsilon": 0.0, "kappa": 1.0, "norm": "linf"},
    )
    rows = make_rows(make_model())
    page = model_page(model, rows, sample=0)
    assert not re.search(r"\d(\.\d+)?e\+\d", page)
    assert "near the data" in page
