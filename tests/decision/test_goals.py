"""What users can want of decisions, typed and said."""

import numpy as np
import pytest

from fdrsvm.decision.goals import (
    FalseAlarmRate,
    MissCost,
    check_scoring,
    goal_in_words,
    read_goal,
    score_counts,
)
from fdrsvm.errors import InvalidInputError

COUNTS = np.array([[90.0, 10.0], [4.0, 6.0]])  # 10 false alarms, 4 of 10 faults missed


def test_the_cost_is_that_of_misses_and_false_alarms():
    assert score_counts(COUNTS, MissCost(20.0), 1) == -(20 * 4 + 10) / 110
    assert score_counts(COUNTS, MissCost(20.0), 0) == -(20 * 10 + 4) / 110


def test_a_false_alarm_rate_wants_most_faults_below_it():
    assert score_counts(COUNTS, FalseAlarmRate(0.1), 1) == 0.6
    assert score_counts(COUNTS, FalseAlarmRate(0.05), 1) == -0.1
    assert score_counts(np.array([[0.0, 0.0], [4.0, 6.0]]), FalseAlarmRate(0.1), 1) == 0.6


@pytest.mark.parametrize(
    ("text", "goal", "words"),
    [
        ("balanced", "balanced_accuracy", "balanced accuracy"),
        ("f1", "f1", "F1 of 'leak'"),
        ("f1-macro", "f1_macro", "mean F1 over the classes"),
        ("accuracy", "accuracy", "accuracy"),
        (
            "cost=20",
            MissCost(20.0),
            "least cost, where a missed fault costs as much as 20 false alarms",
        ),
        (
            "false-alarms=1%",
            FalseAlarmRate(0.01),
            "most faults found with at most 1 % false alarms",
        ),
    ],
)
def test_goals_are_typed_and_said(text, goal, words):
    assert read_goal(text) == goal
    assert goal_in_words(goal, "leak") == words


def test_a_score_of_ones_own_is_called_so():
    assert goal_in_words(lambda counts: 0.0) == "a score of your own"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "best",
        "cost",
        "cost=",
        "cost=x",
        "cost=-1",
        "false-alarms=100%",
        "false-alarms=0.5",
        "cost=20%",
        "f1=3",
        "f1=",
    ],
)
def test_other_goals_are_refused_with_those_there_are(text):
    with pytest.raises(InvalidInputError, match=r"goal: must be balanced, f1, .* cost=RATIO or"):
        read_goal(text)


def test_goals_of_one_class_are_for_two():
    with pytest.raises(InvalidInputError, match="is for two classes"):
        check_scoring(MissCost(2.0), 3)
    assert check_scoring(MissCost(2.0), 2) == MissCost(2.0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, "1"])
def test_numbers_of_goals_are_checked(wrong):
    for goal in (MissCost, FalseAlarmRate):
        with pytest.raises(InvalidInputError, match=r"^(ratio|rate): "):
            goal(wrong)
