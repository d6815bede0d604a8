"""What is drawn is what was computed, and it can be read."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC

from fdrsvm.core.vectors import dual_norm
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.inspection import (
    ClientRiskDisplay,
    ConvergenceDisplay,
    CurvesDisplay,
    FeatureWeightDisplay,
    RobustnessDisplay,
    risk_curve,
)
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveMap
from tests.inspection.models import Linear, Trained, history

pytest.importorskip("matplotlib").use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

LONG = [f"pump_discharge_pressure_chamber_{p}_spectral_kurtosis_$band_{p % 7}" for p in range(64)]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def data(rng):
    X = rng.random((40, 2))
    return X, (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) > 0.0).astype(int)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def check_readable(figure):
    """Draws without a warning, and no text of an axis runs into another or out of the picture."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        for axis, ends in ((ax.xaxis, "intervalx"), (ax.yaxis, "intervaly")):
            boxes = [label.get_window_extent(renderer) for label in shown_labels(axis)]
            boxes.sort(key=lambda box: getattr(box, ends)[0])
            for one, other in pairwise(boxes):
                # Boxes are as high as the tallest letters; a tenth of that does not hinder reading.
                room = 0.1 * np.ptp(getattr(one, ends))
                assert getattr(one, ends)[1] <= getattr(other, ends)[0] + room
            for box in (*boxes, axis.label.get_window_extent(renderer)):
                assert inside(figure, box)
        if ax.get_legend() is not None:
            assert inside(figure, ax.get_legend().get_window_extent(renderer))


def shown_labels(axis):
    low, high = sorted(axis.get_view_interval())
    labels = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [label for label in labels if label.get_visible() and label.get_text()]


def inside(figure, box):
    return (
        figure.bbox.x0 - 1 <= box.x0
        and box.x1 <= figure.bbox.x1 + 1
        and figure.bbox.y0 - 1 <= box.y0
        and box.y1 <= figure.bbox.y1 + 1
    )


# Robustness


def test_the_robustness_curve_is_the_risk_curve(data):
    X, y = data
    model = LinearSVC().fit(X, y)
    radii = np.linspace(0.0, 0.3, 7)
    options = {"kappa": 0.2, "norm": "l1", "support": "unit-box", "sample_weight": X[:, 0]}
    display = RobustnessDisplay.from_estimator(model, X, y, radii=radii, **options)
    expected = risk_curve(model, X, y, radii=radii, **options)
    assert_array_equal(display.risk, expected.risk)
    assert_array_equal(display.line_.get_xdata(), radii)
    assert_array_equal(display.line_.get_ydata(), expected.risk)
    assert legend_texts(display.ax_) == ["LinearSVC"]
    assert "l1 norm" in display.ax_.get_xlabel()
    assert display.ax_.get_ylim()[0] == 0.0
    assert display.training_mark_ is None
    assert display.figure_ is display.ax_.figure
    check_readable(display.figure_)


def test_the_ball_is_that_of_training_unless_given(data):
    X, y = data
    model = Trained(params={"support": (0.0, 2.0)})
    display = RobustnessDisplay.from_estimator(model, X, y, radii=[0.0, 0.2])
    own = {"kappa": 0.5, "norm": "l2", "support": (0.0, 2.0)}
    assert_array_equal(display.risk, risk_curve(model, X, y, radii=[0.0, 0.2], **own).risk)
    display = RobustnessDisplay.from_estimator(
        model, X, y, radii=[0.0, 0.2], kappa=2.0, norm="l1", support=None
    )
    given = {"kappa": 2.0, "norm": "l1", "support": None}
    assert_array_equal(display.risk, risk_curve(model, X, y, radii=[0.0, 0.2], **given).risk)
    other = RobustnessDisplay.from_estimator(Linear([1.0, -2.0]), X, y, radii=[0.0, 0.2])
    default = {"kappa": 1.0, "norm": "linf", "support": None}
    assert_array_equal(other.risk, risk_curve(model, X, y, radii=[0.0, 0.2], **default).risk)


def test_the_radius_of_training_is_marked_on_the_curve(data):
    X, y = data
    model = Trained()
    display = RobustnessDisplay.from_estimator(model, X, y)
    risk = risk_curve(model, X, y, radii=[0.01], kappa=0.5, norm="l2").risk[0]
    assert display.training_mark_.get_xdata() == [0.01]
    assert display.training_mark_.get_ydata() == [risk]
    assert legend_texts(display.ax_) == ["Trained", "radius in training"]
    beyond = RobustnessDisplay.from_estimator(model, X, y, radii=[0.0, 0.001])
    assert beyond.training_mark_ is None
    auto = RobustnessDisplay.from_estimator(Trained(params={"epsilon": "auto"}), X, y)
    assert auto.training_mark_ is None


def test_default_radii_reach_beyond_the_margin_and_the_radius_of_training(data):
    X, y = data
    display = RobustnessDisplay.from_estimator(Linear([1.0, -3.0]), X, y)
    assert_allclose(display.radii, np.linspace(0.0, 0.25, 51))
    display = RobustnessDisplay.from_estimator(Trained(params={"epsilon": 4.0}), X, y)
    assert display.radii[-1] == 5.0
    display = RobustnessDisplay.from_estimator(Linear([0.0, 0.0]), X, y)
    assert display.radii[-1] == 1.0


def test_several_models_share_axes_and_differ_in_colour_and_style(data):
    X, y = data
    steep, flat = LinearSVC(C=100.0).fit(X, y), LinearSVC(C=1e-3).fit(X, y)
    radii = np.linspace(0.0, 0.3, 5)
    first = RobustnessDisplay.from_estimator(flat, X, y, radii=radii, name="flat")
    second = RobustnessDisplay.from_estimator(steep, X, y, radii=radii, name="$s", ax=first.ax_)
    assert second.ax_ is first.ax_
    assert legend_texts(first.ax_) == ["flat", r"\$s"]
    assert first.line_.get_color() != second.line_.get_color()
    assert first.line_.get_linestyle() != second.line_.get_linestyle()
    assert first.ax_.get_ylim()[1] >= second.risk.max()
    third = second.plot(first.ax_, name="again", c="black", linewidth=3)
    assert third.line_.get_color() == "black"
    assert third.line_.get_linewidth() == 3
    check_readable(first.figure_)


def test_a_single_radius_is_a_point(data):
    X, y = data
    display = RobustnessDisplay.from_estimator(Linear([1.0, -3.0]), X, y, radii=[0.1])
    assert display.line_.get_marker() == "o"


@pytest.mark.parametrize(
    ("model", "options", "argument"),
    [
        (LinearSVC(), {}, "model"),
        (Linear(np.ones((3, 2))), {}, "model"),
        (Linear([1.0, 2.0, 3.0]), {}, "X"),
        (Linear([1.0, 2.0]), {"norm": "l3"}, "norm"),
        (Linear([1.0, 2.0]), {"radii": []}, "radii"),
        (Trained(), {"radii": []}, "radii"),
        (Trained(), {"radii": [[0.1], [0.2]]}, "radii"),
        (Linear([1.0, 2.0]), {"support": (0.0, 0.1)}, "X"),
        (Trained(params={"kappa": {"a": 1.0, "b": 2.0}}), {}, "kappa"),
    ],
)
def test_bad_input_to_the_robustness_display_is_named(model, options, argument, data):
    with pytest.raises(InvalidInputError) as caught:
        RobustnessDisplay.from_estimator(model, *data, **options)
    assert caught.value.argument == argument
    assert not plt.get_fignums()


# Convergence


def test_the_convergence_display_shows_the_history():
    rounds = history([np.inf, 0.9, 0.5, 0.41], [0.0, 0.1, 0.35, 0.4])
    model = Trained(history_=rounds, objective_=0.41, lower_bound_=0.405, gap_=0.005 / 0.41)
    display = ConvergenceDisplay.from_estimator(model)
    upper, lower = display.ax_
    assert_array_equal(display.objective, [np.inf, 0.9, 0.5, 0.41])
    assert_array_equal(display.objective_line_.get_xdata(), [1, 2, 3, 4])
    assert_array_equal(display.objective_line_.get_ydata(), [np.nan, 0.9, 0.5, 0.41])
    assert_array_equal(display.lower_bound_line_.get_ydata(), [0.0, 0.1, 0.35, 0.4])
    assert_array_equal(display.gap_line_.get_ydata(), [np.nan, *(r.gap for r in rounds[1:])])
    assert display.zero_gap_line_ is None
    assert lower.get_yscale() == "log"
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("worst-case risk", "relative gap")
    assert lower.get_xlabel() == "round"
    assert legend_texts(upper) == [
        "Trained: objective",
        "Trained: certified lower bound",
        "Trained: final",
    ]
    assert legend_texts(lower) == ["Trained: gap", "Trained: final", "tol = 0.0001"]
    assert upper.lines[-1].get_ydata() == [0.405]
    check_readable(display.figure_)


CASES = {
    "one round": ([0.5], [0.2]),
    "nothing known": ([np.inf], [0.0]),
    "nan, and a bound of minus infinity": ([np.nan, 0.6, 0.5], [-np.inf, -50.0, 0.4]),
    "solved at once": ([0.5], [0.5]),
    "a gap of 0 at the end": ([0.9, 0.6, 0.5], [0.1, 0.4, 0.5]),
    "a fall by orders of magnitude": ([4e4, 90.0, 0.5], [0.0, 0.1, 0.4]),
    "no loss at all": ([0.0, 0.0], [0.0, 0.0]),
    "many rounds": (0.3 + 1.0 / np.arange(1, 2001), 0.3 - 0.3 / np.arange(1, 2001)),
}


@pytest.mark.parametrize("case", CASES)
def test_any_history_can_be_drawn(case):
    objective, bound = CASES[case]
    display = ConvergenceDisplay.from_estimator(Trained(history_=history(objective, bound)))
    check_readable(display.figure_)
    known = np.isfinite(display.objective)
    low, high = display.ax_[0].get_ylim()
    assert ((display.objective[known] >= low) & (display.objective[known] <= high)).all()
    for label in shown_labels(display.ax_[1].xaxis):
        assert label.get_text().isdigit()
    zero = display.gap <= 0.0
    if zero.any():
        assert_array_equal(display.zero_gap_line_.get_xdata(), display.rounds[zero])
    if not np.isfinite(display.gap).any():
        assert [text.get_text() for text in display.ax_[1].texts] == [
            "no certified gap in any round"
        ]


def test_a_method_with_an_objective_of_its_own_is_not_said_to_have_a_worst_case():
    model = Linear([1.0])
    model.history_ = history([0.5], [0.2])
    assert ConvergenceDisplay.from_estimator(model).ax_[0].get_ylabel() == "objective"


def test_a_tol_of_zero_is_no_line():
    model = Trained(history_=history([0.5], [0.2]), params={"tol": 0.0})
    display = ConvergenceDisplay.from_estimator(model)
    assert legend_texts(display.ax_[1]) == ["Trained: gap"]
    check_readable(display.figure_)


def test_a_final_gap_of_zero_is_shown_as_one():
    model = Trained(history_=history([0.5], [0.2]), objective_=0.5, lower_bound_=0.5, gap_=0.0)
    display = ConvergenceDisplay.from_estimator(model)
    assert_array_equal(display.zero_gap_line_.get_xdata(), [1])


def test_two_runs_share_axes():
    quick = Trained(history_=history([0.9, 0.5, 0.41], [0.1, 0.35, 0.4]))
    slow = Trained(history_=history(2.0 / np.arange(1, 301), np.zeros(300)))
    first = ConvergenceDisplay.from_estimator(quick, name="bundle")
    second = ConvergenceDisplay.from_estimator(slow, name="subgradient", ax=first.ax_)
    assert second.ax_ == first.ax_
    assert first.objective_line_.get_color() != second.objective_line_.get_color()
    assert legend_texts(first.ax_[1]) == ["bundle: gap", "tol = 0.0001", "subgradient: gap"]
    assert first.ax_[0].get_xlim()[1] > 300
    check_readable(first.figure_)


def test_one_axes_shows_the_objective_alone():
    display = ConvergenceDisplay.from_estimator(
        Trained(history_=history([0.5], [0.2])), ax=plt.figure().add_subplot()
    )
    assert len(display.ax_) == 1
    assert display.gap_line_ is None
    assert display.ax_[0].get_xlabel() == "round"
    with pytest.raises(InvalidInputError, match="must be one Axes or two; got 3"):
        display.plot(plt.figure().subplots(3))


def test_a_model_without_history_is_refused():
    for model, found in (
        (Linear([1.0]), "Linear has no history_"),
        (Trained(history_=()), "it is empty"),
    ):
        with pytest.raises(InvalidInputError, match=found):
            ConvergenceDisplay.from_estimator(model)


# Weights


def test_the_largest_weights_are_drawn_largest_first():
    names = ["flow", "speed", "pressure", "age"]
    model = Linear([0.5, -2.0, 1.0, -0.1], classes=["ok", "worn"], feature_names=names)
    display = FeatureWeightDisplay.from_estimator(model, max_features=3)
    assert_array_equal(display.shown_, [1, 2, 0])
    assert [bar.get_width() for bar in display.bars_] == [-2.0, 1.0, 0.5]
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["speed", "pressure", "flow"]
    assert display.ax_.get_ylabel() == "feature (largest 3 of 4)"
    assert legend_texts(display.ax_) == ["towards ok", "towards worn"]
    assert display.ax_.get_legend().get_title().get_text() == "Linear"
    colours = [bar.get_facecolor() for bar in display.bars_]
    assert colours[1] == colours[2] != colours[0]
    tops = [bar.get_y() for bar in display.bars_]
    assert display.ax_.yaxis_inverted()
    assert tops == sorted(tops)
    check_readable(display.figure_)


def test_of_several_classes_one_is_drawn():
    model = Linear([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]], classes=["a", "b", "c"])
    display = FeatureWeightDisplay.from_estimator(model, class_of_interest="b")
    assert [bar.get_width() for bar in display.bars_] == [-4.0, 3.0]
    assert legend_texts(display.ax_) == ["towards the others", "towards b"]
    with pytest.raises(InvalidInputError, match=r"class_of_interest.*it is None"):
        FeatureWeightDisplay.from_estimator(model)


@pytest.mark.parametrize("n_features", [1, 30])
def test_long_names_do_not_overlap_and_stay_apart(n_features, rng):
    model = Linear(rng.normal(size=n_features) + 3.0, feature_names=LONG[:n_features])
    model.classes_ = np.array(["healthy", "cavitation, and a worn valve at the second discharge"])
    display = FeatureWeightDisplay.from_estimator(model, max_features=30)
    check_readable(display.figure_)
    labels = {label.get_text() for label in display.ax_.get_yticklabels()}
    assert len(labels) == n_features


def test_names_that_differ_only_in_the_middle_get_their_number():
    names = [f"{'a' * 40}{p}{'b' * 40}" for p in range(3)]
    display = FeatureWeightDisplay.from_estimator(Linear([1.0, 3.0, 2.0], feature_names=names))
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert [label[-3:] for label in labels] == ["[1]", "[2]", "[0]"]


def test_weights_too_small_to_see_are_left_out_unless_all_are_zero():
    display = FeatureWeightDisplay.from_estimator(Linear([1.0, 1e-9, 0.0, -0.5]))
    assert_array_equal(display.shown_, [0, 3])
    display = FeatureWeightDisplay.from_estimator(Linear([0.0, 0.0]))
    assert_array_equal(display.shown_, [0, 1])
    check_readable(display.figure_)


def test_small_axes_get_small_names(rng):
    display = FeatureWeightDisplay.from_estimator(
        Linear(rng.normal(size=30) + 3.0), max_features=30
    )
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 4.0), layout="constrained")
    roomy = display.ax_.get_yticklabels()[0].get_fontsize()
    display.plot(axes[0], name="small")
    assert display.ax_.get_yticklabels()[0].get_fontsize() < roomy
    figure.canvas.draw()


def test_bad_numbers_of_bars_are_named():
    for count in (0, 1.5, True, None):
        with pytest.raises(InvalidInputError, match="max_features: must be a whole number"):
            FeatureWeightDisplay.from_estimator(Linear([1.0]), max_features=count)
        with pytest.raises(InvalidInputError, match="max_clients: must be a whole number"):
            ClientRiskDisplay.from_estimator(
                Trained(worst_case_risk_per_client_={"a": 1.0}), max_clients=count
            )


# Clients


def test_client_risks_are_drawn_worst_first_with_the_objective():
    risks = {"north": 0.2, "south": 0.5, 7: np.nan}
    model = Trained(worst_case_risk_per_client_=risks, objective_=0.31)
    display = ClientRiskDisplay.from_estimator(model, name="pumps")
    assert_array_equal(display.shown_, [1, 0, 2])
    assert_array_equal([bar.get_width() for bar in display.bars_], [0.5, 0.2, np.nan])
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["south", "north", "7 (not known)"]
    assert_array_equal(display.objective_line_.get_xdata(), [0.31, 0.31])
    assert legend_texts(display.ax_) == ["objective 0.31"]
    check_readable(display.figure_)


@pytest.mark.parametrize("n_clients", [1, 50, 200])
def test_any_number_of_clients_can_be_drawn(n_clients, rng):
    risks = {f"plant {g}": float(risk) for g, risk in enumerate(rng.random(n_clients))}
    model = Trained(worst_case_risk_per_client_=risks, objective_=0.5)
    display = ClientRiskDisplay.from_estimator(model)
    assert len(display.bars_) == min(n_clients, 50)
    assert display.bars_[0].get_width() == max(risks.values())
    assert ("50 worst of 200" in display.ax_.get_ylabel()) == (n_clients == 200)
    check_readable(display.figure_)


def test_without_an_objective_there_is_no_line():
    display = ClientRiskDisplay.from_estimator(Trained(worst_case_risk_per_client_={"a": 0.1}))
    assert display.objective_line_ is None
    assert display.ax_.get_legend() is None
    assert display.ax_.get_title(loc="left") == "Trained"


def test_of_several_classes_the_mean_is_drawn_or_one_class():
    model = Trained(
        worst_case_risk_per_client_={
            "a": np.array([0.1, 0.2, 0.6]),
            "b": np.array([0.4, 0.1, 0.1]),
        },
        objective_=np.array([0.25, 0.15, 0.35]),
    )
    model.classes_ = np.array(["x", "y", "z"])
    display = ClientRiskDisplay.from_estimator(model)
    assert_allclose(display.risks, [0.3, 0.2])
    assert_allclose(display.objective, 0.25)
    display = ClientRiskDisplay.from_estimator(model, class_of_interest="z")
    assert_allclose(display.risks, [0.6, 0.1])
    assert display.objective == 0.35
    with pytest.raises(InvalidInputError, match="class_of_interest"):
        ClientRiskDisplay.from_estimator(model, class_of_interest="w")


def test_a_model_without_client_risks_is_refused():
    with pytest.raises(InvalidInputError, match="Linear has no worst_case_risk_per_client_"):
        ClientRiskDisplay.from_estimator(Linear([1.0]))


# Real models, and no matplotlib


@pytest.mark.parametrize("n_classes", [2, 3])
def test_real_estimators_have_all_four_pictures(n_classes):
    pd = pytest.importorskip("pandas")
    source = load_breast_cancer()
    X = pd.DataFrame(minmax_scale(source.data[:150, :5]), columns=source.feature_names[:5])
    y = source.target[:150] if n_classes == 2 else np.digitize(X.iloc[:, 0], [0.3, 0.6])
    plants = np.array(["north", "south", "east"])[np.arange(150) % 3]
    model = FDRSVC(epsilon=0.01, kappa=0.5).fit(X, y, clients=plants)
    displays = [
        ConvergenceDisplay.from_estimator(model),
        ClientRiskDisplay.from_estimator(model),
        FeatureWeightDisplay.from_estimator(model, class_of_interest=None if n_classes == 2 else 1),
    ]
    assert displays[0].final_gap == pytest.approx(np.max(model.gap_))
    assert set(displays[1].clients) == {"north", "south", "east"}
    assert_allclose(displays[1].risks.mean(), displays[1].objective)
    assert displays[2].feature_names == tuple(source.feature_names[:5])
    if n_classes == 2:
        displays.append(RobustnessDisplay.from_estimator(model, X, y))
        assert displays[3].training_radius == 0.01
    for display in displays:
        check_readable(display.figure_)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = FeatureWeightDisplay(
        weights=np.ones(2), feature_names=["a", "b"], towards=("no", "yes")
    )
    with pytest.raises(UnsupportedError, match=r"pip install 'fdr-svm\[experiments\]'"):
        display.plot()


def test_importing_evaluation_does_not_import_matplotlib():
    code = "import fdrsvm.inspection, sys; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_other_packages_classifiers_have_weights_too(data):
    model = LogisticRegression().fit(*data)
    display = FeatureWeightDisplay.from_estimator(model)
    assert_array_equal(np.sort(display.weights), np.sort(model.coef_[0]))


# Curves


def bent_model(n_classes=2):
    rng = np.random.default_rng(1)
    features = AdditiveMap(n_knots=3, pairs=[(0, 2)], limits=(10.0, 20.0)).over(3)
    n_scores = 1 if n_classes == 2 else n_classes
    return LinearModel.checked(
        rng.normal(size=(n_scores, features.n_outputs)),
        np.zeros(n_scores),
        list("abc")[:n_classes],
        estimator="other",
        feature_names=("flow [l/min]", "a name with a $ that is longer than all others", "rpm"),
        features=features,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_and_surfaces_are_those_of_the_score(n_classes):
    model = bent_model(n_classes)
    chosen = {} if n_classes == 2 else {"class_of_interest": "c"}
    display = CurvesDisplay.from_estimator(model, **chosen)
    assert display.towards == "abc"[n_classes - 1]
    assert len(display.ax_) == 4
    sizes = np.r_[np.ptp(display.heights, axis=1), np.ptp(display.surfaces, axis=(1, 2))]
    assert_array_equal(display.shown_, np.argsort(-sizes))

    def score(X):
        return model.decision_function(X).reshape(len(X), -1)[:, -1]

    at_low = score(np.full((1, 3), 10.0))
    for at, ax in zip(display.shown_, display.ax_, strict=True):
        if at == 3:
            (mesh,) = ax.collections
            corner = score(np.array([[20.0, 10.0, 20.0]])) - at_low
            alone = sum(score(np.array([row])) - at_low for row in [(20, 10, 10), (10, 10, 20.0)])
            assert np.ma.getdata(mesh.get_array())[-1, -1] == pytest.approx((corner - alone)[0])
            continue
        x, y = ax.lines[0].get_data()
        X = np.full((len(x), 3), 10.0)
        X[:, at] = x
        assert_allclose(score(X) - at_low, y, atol=1e-12)
    check_readable(display.figure_)


def test_curves_go_on_given_axes_and_as_many_as_asked_for():
    display = CurvesDisplay.from_estimator(bent_model(), max_terms=2, name="seal")
    assert len(display.ax_) == 2
    assert display.figure_.get_suptitle() == "seal"
    _, axes = plt.subplots(2, 2)
    again = display.plot(axes)
    assert again.ax_ == tuple(axes.ravel()[:2])
    with pytest.raises(InvalidInputError, match="ax: must be 2 Axes"):
        display.plot(axes[0, 0])


def test_models_without_curves_are_sent_elsewhere_and_back():
    with pytest.raises(UnsupportedError, match="drawn by FeatureWeightDisplay"):
        CurvesDisplay.from_estimator(Linear([1.0, 2.0]))
    with pytest.raises(UnsupportedError, match="draw its curves with CurvesDisplay"):
        FeatureWeightDisplay.from_estimator(bent_model())


def test_radii_of_a_bent_model_reach_as_far_as_its_steepest_score(rng):
    model, X = bent_model(), 10.0 + 10.0 * rng.random((30, 3))
    display = RobustnessDisplay.from_estimator(model, X, model.predict(X))
    features = model.features  # epsilon is in the unit of span, which is that of the readings here
    steepest = features.steepness(model.coef[0], "linf")
    assert steepest < features.stretch("linf") * dual_norm(model.coef[0], "linf", features.groups)
    assert display.radii[-1] == pytest.approx(1.0 / steepest)
