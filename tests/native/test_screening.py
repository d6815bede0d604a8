"""The rules one by one, on answers made by hand, and what is refused at the edge.

That honest answers pass and that what passes is legal is tested in tests/federated.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm.federated.limits import Limits
from fdrsvm.federated.screen import Screen
from fdrsvm.native import screening

RULES = Screen(Limits.checked(1.0, 1))
W = np.array([0.5])
# One row x = 0.4 with label +1, a radius of 0.1 and labels that are trusted: the hinge at w is 0.8,
# the risk 0.05 more, and the cut touches it.
HONEST = {
    "risks": np.array([0.85]),
    "constants": np.array([1.0]),
    "slopes": np.array([[-0.4]]),
    "norm_weights": np.array([0.1]),
}


def radii_of(flips=0.0, n_clients=1):
    return screening.Radii(
        floors=np.full(n_clients, 0.1), flips=np.full(n_clients, flips), n_features=1, norm=3
    )


def judged(flips=0.0, *, rules=RULES, touching=True, **changes):
    answers = screening.Answers({0: {**HONEST, **changes}})
    points = rules.points(W[None])
    return screening.judge_answers(
        rules.bounds, radii_of(flips), points, answers, touching=touching
    )


def assert_found(found, rule, value, limit, client=0):
    (finding,) = found
    assert (finding.client, finding.rule) == (client, getattr(screening.Rule, rule))
    assert finding.value == pytest.approx(value, rel=1e-8)
    assert finding.limit == pytest.approx(limit, rel=1e-8)


def test_the_honest_answer_passes():
    assert judged() == []
    assert judged(rules=Screen()) == []


@pytest.mark.parametrize(
    ("rule", "changes", "value", "limit"),
    [
        ("NORM_WEIGHT", {"norm_weights": np.array([0.11])}, 0.11, 0.1),
        ("CONSTANT_HIGH", {"constants": np.array([1.1])}, 1.1, 1.0),
        ("CONSTANT_LOW", {"constants": np.array([-0.1])}, -0.1, 0.0),
        ("SLOPE", {"slopes": np.array([[-1.2]])}, 1.2, 1.0),
        # Rows of size 1 have scores up to 0.5, so a risk from 0.05 + 0.5 to 0.05 + 1.5.
        ("RISK_LOW", {"risks": np.array([0.5])}, 0.5, 0.55),
        ("RISK_HIGH", {"risks": np.array([1.6])}, 1.6, 1.55),
        ("ABOVE", {"risks": np.array([0.8])}, 0.85, 0.8),
        ("OVER", {"risks": np.array([0.9])}, 0.9, 0.85),
        ("APART", {"flips": 0.1, "risks": np.array([0.9])}, 0.85, 0.9),
    ],
)
def test_every_rule_on_risks_and_cuts(rule, changes, value, limit):
    assert_found(judged(**changes), rule, value, limit)


def test_cuts_that_need_not_touch_may_lie_below():
    assert judged(0.1, touching=False, risks=np.array([0.9])) == []


def test_risks_with_a_penalty_are_judged_without_it():
    """0.8 is the mean loss, and 0.3 ||w||^2 is 0.075."""
    loss = {**HONEST, "risks": np.array([0.875]), "norm_weights": np.zeros(1)}
    answers = screening.Answers({0: loss})
    arguments = (RULES.bounds, radii_of(), RULES.points(W[None]), answers)
    right = screening.judge_answers(*arguments, touching=True, penalties=np.array([0.3]))
    wrong = screening.judge_answers(*arguments, touching=True, penalties=np.array([0.4]))
    assert right == []
    assert_found(wrong, "ABOVE", 0.8, 0.775)


def test_risks_and_cuts_of_different_rounds_may_not_contradict_each_other():
    cut = screening.Cuts(
        np.array([1]), *(HONEST[n] for n in ("constants", "slopes")), np.full(1, 0.1)
    )
    for risk, is_wrong in ((0.8, True), (0.85, False), (0.9, True), (np.nan, False)):
        risks = np.array([[0.0], [risk]])
        found = screening.judge_past(
            RULES.bounds, radii_of(n_clients=2), RULES.points(W[None]), risks, cut
        )
        if is_wrong:
            assert_found(found, "CONTRADICTING", *sorted((risk, 0.85), reverse=True), client=1)
        else:
            assert found == []


def past_of(best_risk, constants):
    """Rounds with the honest slope; the best model is 0, where every row's loss is 1."""
    n_rounds = len(constants)
    return screening.Past(
        best_risks=np.array([best_risk]),
        constants=np.array(constants).reshape(n_rounds, 1),
        slopes=np.full((n_rounds, 1, 1), -0.4),
        norm_weights=np.full((n_rounds, 1), 0.1),
    )


@pytest.mark.parametrize(
    ("best_risk", "constants", "expected"),
    [
        (1.0, [], None),
        (1.0, [1.0, np.nan], None),
        (np.nan, [1.0], None),
        (0.9, [1.0], (1.0, 0.9)),  # the new cut is 1 at the model 0
        # Half of the mass at 0.4 leaves the other half a hinge of 0.5 at least: 0.05 + 0.5 - 0.2
        # + 0.25, below the risk; and one of 1.5 at most.
        (1.0, [1.0, 0.5], None),
    ],
)
def test_a_round_is_held_against_the_past(best_risk, constants, expected):
    past = past_of(best_risk, constants)
    points = RULES.points(np.array([W, [0.0]]))
    answers = screening.Answers({0: HONEST})
    found = screening.judge_round(RULES.bounds, radii_of(), points, answers, past, touching=True)
    if expected is None:
        assert found == []
    else:
        assert_found(found, "CONTRADICTING", *expected)


def test_an_old_cut_above_a_new_risk_is_found():
    steeper = screening.Past(
        best_risks=np.array([np.nan]),
        constants=np.ones((2, 1)),
        slopes=np.array([-0.4, 0.2]).reshape(2, 1, 1),
        norm_weights=np.full((2, 1), 0.1),
    )
    points = RULES.points(np.array([W, [0.0]]))
    answers = screening.Answers({0: HONEST})
    found = screening.judge_round(RULES.bounds, radii_of(), points, answers, steeper, touching=True)
    assert_found(found, "CONTRADICTING", 1.15, 0.85)


# rho (w - mu) - rho u - v is in 0.1 times the unit ball of the norm: 0.3 - 0.65 + 0.4 = 0.05.
SOLVED = {
    **HONEST,
    "vector": np.array([0.85]),
    "squares": np.array([0.04, 0.4225, 0.04]),
}


def judge(*arguments):
    return screening.judge_solves(RULES.bounds, radii_of(), *arguments)


def solved_problem(norm=3, **changes):
    values = {0: {**SOLVED, **changes}}
    solve = screening.Solve(
        w=W, rho=1.0, tau=0.0, relaxation=1.0, gap=1e-8, n_features=1, norm=norm
    )
    return solve, screening.Answers(values), values


def judged_solve(own=0.3, norm=3, **changes):
    return judge(*solved_problem(norm, **changes), np.array([[0.2]]), np.array([[own]]))


@pytest.mark.parametrize("norm", [1, 2, 3])
def test_a_vector_must_follow_from_the_cut(norm):
    assert judged_solve(norm=norm) == []
    (finding,) = judged_solve(norm=norm, vector=np.array([0.5]))
    assert finding.rule == screening.Rule.VECTOR
    assert finding.value == pytest.approx(0.4)
    assert 0.1 < finding.limit < 0.101


def test_a_risk_must_follow_from_the_solve():
    """At 0.65 the cut is 1 - 0.26 + 0.065; 0.15 further a risk is 0.15 + 0.015 more at most."""
    limit = 0.97
    assert judged_solve(risks=np.array([limit])) == []
    (finding,) = judged_solve(risks=np.array([limit + 1e-6]))
    assert finding.rule == screening.Rule.OVER
    assert finding.limit == pytest.approx(limit, rel=1e-7)
    without = screening.judge_solves(
        Screen().bounds,
        radii_of(),
        *solved_problem(risks=np.array([9.0])),
        np.array([[0.2]]),
        np.array([[0.3]]),
    )
    assert without == []  # nobody knows how steep a risk can be


def test_an_intercept_must_too():
    values = {
        **SOLVED,
        "slopes": np.array([[-0.4, 0.25]]),
        "vector": np.array([0.85, 0.05]),
        "squares": np.array([0.08, 0.425, 0.04]),
    }
    answers = screening.Answers({0: values})
    w, duals, own = np.array([0.5, 0.3]), np.array([[0.2, 0.0]]), np.array([[0.3, 0.1]])
    solve = screening.Solve(w=w, rho=1.0, tau=0.0, relaxation=1.0, gap=1e-8, n_features=1, norm=3)
    assert judge(solve, answers, {0: values}, duals, own) == []
    moved = {**values, "vector": np.array([0.85, 0.06])}
    (finding,) = judge(solve, answers, {0: moved}, duals, own)
    assert finding.rule == screening.Rule.INTERCEPT
    assert finding.value == pytest.approx(0.01)


@pytest.mark.parametrize("k", range(3))
def test_squares_must_be_those_of_their_vectors(k):
    wrong = SOLVED["squares"].copy()
    wrong[k] *= 1.01
    assert_found(judged_solve(squares=wrong), "SQUARES", wrong[k], SOLVED["squares"][k])
    # Nobody knows how far a client moved whose last answer was lost.
    assert len(judged_solve(own=np.nan, squares=wrong)) == (0 if k == 0 else 1)


def test_answers_may_lie_in_memory_in_any_way():
    strided = {name: np.repeat(values, 2, axis=0)[::2] for name, values in HONEST.items()}
    strided["slopes"] = np.asfortranarray(np.array([[-0.4, 9.0]]))[:, :1]
    shifted = {
        name: np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:].view(float).reshape(values.shape)
        for name, values in HONEST.items()
    }
    answers = screening.Answers({0: HONEST, 2: strided, 1: shifted})
    assert answers.clients.tolist() == [0, 2, 1]
    assert answers.cuts.owners.tolist() == [0, 2, 1]
    assert answers.risks.tolist() == [[0.85]] * 3
    assert answers.cuts.slopes.tolist() == [[-0.4]] * 3


def test_cuts_of_different_numbers_stay_with_their_clients():
    more = {
        "risks": np.array([0.85]),
        "constants": np.array([1.0, 0.5, 0.2]),
        "slopes": np.array([[-0.4], [0.1], [0.2]]),
        "norm_weights": np.array([0.1, 0.0, 0.2]),
    }
    none = {name: values[:0] for name, values in more.items()} | {"risks": more["risks"]}
    answers = screening.Answers({3: more, 0: none, 1: HONEST})
    assert answers.cuts.owners.tolist() == [3, 3, 3, 1]
    assert answers.cuts.constants.tolist() == [1.0, 0.5, 0.2, 1.0]
    found = screening.judge_answers(
        RULES.bounds, radii_of(n_clients=4), RULES.points(W[None]), answers, touching=True
    )
    assert_found(found, "NORM_WEIGHT", 0.2, 0.1, client=3)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, ValueError),
        ({0: {**HONEST, "risks": np.array([0.85], dtype=np.float32)}}, TypeError),
        ({0: {**HONEST, "risks": [0.85]}}, TypeError),
        ({0: {**HONEST, "slopes": np.array([-0.4])}}, TypeError),
        ({0: {**HONEST, "slopes": np.ones((2, 1))}}, ValueError),
        ({0: {**HONEST, "norm_weights": np.ones(2)}}, ValueError),
        ({0: HONEST, 1: {**HONEST, "risks": np.ones(2)}}, ValueError),
        ({0: HONEST, 1: {**HONEST, "slopes": np.ones((1, 2))}}, ValueError),
        ({0: {"risks": np.ones(1)}}, KeyError),
        ({"first": HONEST}, TypeError),
        ([HONEST], TypeError),
    ],
)
def test_answers_that_cannot_be_read_are_refused(values, error):
    with pytest.raises(error):
        screening.Answers(values)


def test_what_does_not_fit_together_is_refused():
    logistic = Screen(Limits.checked(1.0, 1, loss="logistic"))
    answers = screening.Answers({0: HONEST})
    two = screening.Answers({0: {**HONEST, "slopes": np.ones((1, 2))}})
    absent = screening.Answers({1: HONEST})
    one_point, radii = RULES.points(W[None]), radii_of()
    for arguments in (
        (RULES.bounds, radii, screening.Points(np.ones((1, 3))), answers),
        (RULES.bounds, radii, RULES.points(np.ones((2, 1))), answers),
        (RULES.bounds, radii, one_point, two),
        (RULES.bounds, radii, one_point, absent),
        (RULES.bounds, radii, logistic.points(W[None]), answers),
        (logistic.bounds, radii, one_point, answers),
        (Screen(Limits.checked(1.0, 2)).bounds, radii, one_point, answers),
    ):
        with pytest.raises(ValueError, match="must"):
            screening.judge_answers(*arguments, touching=True)
    cut = screening.Cuts(np.array([1]), np.ones(1), np.ones((1, 1)), np.ones(1))
    with pytest.raises(ValueError, match="owners"):
        screening.judge_past(RULES.bounds, radii, one_point, np.ones((1, 1)), cut)
    with pytest.raises(ValueError, match="norm"):
        screening.Radii(floors=np.ones(1), flips=np.ones(1), n_features=1, norm=4)
    with pytest.raises(ValueError, match="flips"):
        screening.Radii(floors=np.ones(1), flips=np.ones(2), n_features=1, norm=1)
    with pytest.raises(ValueError, match="slopes"):
        screening.Past(
            best_risks=np.ones(1),
            constants=np.ones((2, 1)),
            slopes=np.ones((1, 1, 1)),
            norm_weights=np.ones((2, 1)),
        )


SHAPES = {"constants": (None,), "slopes": (None, 2), "norm_weights": (None,), "squares": (3,)}
FORM = screening.Form(
    SHAPES, [("constants", "slopes", "norm_weights")], ["norm_weights", "squares"]
)


def arrays_of(n_cuts):
    return {
        "constants": np.ones(n_cuts),
        "slopes": -np.ones((n_cuts, 2)),
        "norm_weights": np.ones(n_cuts),
        "squares": np.zeros(3),
    }


def first_broken_rule(values):
    """The rules of form, in order, as NumPy sees them."""
    if values.keys() != SHAPES.keys():
        return "names", None
    for name, shape in SHAPES.items():
        array = values[name]
        if type(array) is not np.ndarray or array.dtype != np.float64:
            return "dtype", name
        if not array.flags.carray:
            return "dtype", name
        if array.ndim != len(shape) or any(
            n not in (None, m) for n, m in zip(shape, array.shape, strict=True)
        ):
            return "shape", name
        if not np.isfinite(array).all():
            return "finite", name
    for name in ("slopes", "norm_weights"):
        if len(values[name]) != len(values["constants"]):
            return "cuts", name
    for name in ("norm_weights", "squares"):
        if (values[name] < 0.0).any():
            return "negative", name
    return None


CHANGES = [
    lambda array: array.astype(np.float32),
    lambda array: array.astype(object),
    lambda array: array.astype(">f8"),
    lambda array: array.tolist(),
    lambda array: memoryview(array),
    lambda array: array[..., None],
    lambda array: array.sum(),
    lambda array: np.concatenate([array, array]),
    lambda array: array[:0],
    lambda array: np.full_like(array, np.nan),
    lambda array: np.full_like(array, -np.inf),
    lambda array: -1.0 - np.abs(array),
    lambda array: -0.0 * array,
    lambda array: np.asfortranarray(array),
    lambda array: np.ma.masked_array(array),
    lambda array: np.frombuffer(b"x" + array.tobytes(), np.float64, array.size, 1).reshape(
        array.shape
    ),  # between the places of numbers
    lambda array: np.repeat(array, 2, axis=-1)[..., ::2],  # every other number in memory
    lambda array: None,
]


@given(
    n_cuts=st.integers(0, 4),
    changes=st.dictionaries(st.sampled_from(sorted(SHAPES)), st.sampled_from(CHANGES), max_size=2),
    gone=st.sets(st.sampled_from(sorted(SHAPES)), max_size=1),
    more=st.booleans(),
)
def test_the_form_of_an_answer(n_cuts, changes, gone, more):
    values = arrays_of(n_cuts)
    for name, change in changes.items():
        values[name] = change(values[name])
    values = {name: array for name, array in values.items() if name not in gone}
    if more:
        values["more"] = np.ones(1)
    assert FORM.fault(values) == first_broken_rule(values)


def test_one_nan_anywhere_is_found():
    for k in range(6):
        values = arrays_of(3)
        values["slopes"].flat[k] = np.nan
        assert FORM.fault(values) == ("finite", "slopes")


@pytest.mark.parametrize(
    ("shapes", "together", "error"),
    [
        ({"a": 3}, [], TypeError),
        ({"a": ("3",)}, [], TypeError),
        ({"a": (-1,)}, [], TypeError),
        ({1: (3,)}, [], TypeError),
        ({"a": (3,)}, ["a"], TypeError),
        ({"a": (3,)}, [("a", "b", "c")], ValueError),
    ],
)
def test_a_form_that_is_not_one_is_refused(shapes, together, error):
    with pytest.raises(error, match="must be"):
        screening.Form(shapes, together, [])
