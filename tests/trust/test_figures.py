"""The figures of docs/privacy.md come from real runs, here short ones."""

from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks.trust import leak_figures, privacy_figures
from benchmarks.trust.leak_figures import Leaks, covering_blur, measure_leaks, unit_parts
from benchmarks.trust.privacy_figures import (
    Privacy,
    PrivacyFigure,
    draw_privacy,
    measure_privacy,
    split,
    write_privacy_figure,
)

from fdrsvm.errors import InvalidInputError


def test_the_parts_hold_every_row_once_within_the_unit_box():
    parts = unit_parts("bcw", 10)
    X = np.concatenate([X for X, _ in parts.values()])
    assert X.shape == (398, 30)
    assert len(np.unique(X, axis=0)) == 398
    assert (X.min(), X.max()) == (0.0, 1.0)
    assert max(len(y) for _, y in parts.values()) - min(len(y) for _, y in parts.values()) <= 1


@pytest.mark.parametrize(("width", "n_clients"), [(30, 4), (22, 4), (30, 10), (1, 50)])
def test_the_covering_blur_is_the_least_that_outnumbers_a_cut(width, n_clients):
    blur = covering_blur(width, n_clients)
    numbers = width + 1  # slope and constant
    assert blur * n_clients > numbers >= (blur - 1) * n_clients


def test_leaks_are_measured_and_printed():
    runs = measure_leaks(["bcw"], ["SM, gamma 1"], (0, None), (0.0, 1e-4), rounds=60, kappa=np.inf)
    plain, rounded, blurred, both = runs
    assert [one.blur for one in (plain, rounded, blurred, both)] == [0, 0, 8, 8]
    assert [one.resolution for one in (plain, rounded, blurred, both)] == [0.0, 1e-4, 0.0, 1e-4]
    assert plain.from_sums > 0 == both.from_sums
    assert rounded.from_sums > 0  # a grid alone is no defence of cuts
    assert plain.by_cuts_from_sums <= plain.from_sums
    assert plain.n_other == 200
    assert Leaks((plain, rounded, blurred, both)).covered == (both,)
    assert Leaks((plain, rounded, blurred, both)).holds
    assert not Leaks((plain, blurred)).holds
    assert plain.n_rounds == blurred.n_rounds == 60
    lines = leak_figures.to_markdown(Leaks((plain, blurred))).splitlines()
    assert lines[4:5] == [""]
    assert {line.count("|") for line in lines[:4]} == {15}
    assert f"| {plain.from_sums} | {plain.half_from_sums} of 200 |" in lines[2]
    with pytest.raises(InvalidInputError, match="methods"):
        next(measure_leaks(["bcw"], ["SGD"]))


def test_rows_are_short_enough_for_the_radius_by_construction():
    data = split("bcw", 0)
    assert len(data.parts) == 4
    for X, _ in data.parts:
        assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-12
    assert np.linalg.norm(data.X_test, axis=1).max() <= 1.0 + 1e-12
    assert len(data.y_test) + sum(len(y) for _, y in data.parts) == 569


def test_without_noise_the_private_method_learns():
    (figure,) = measure_privacy(["bcw"], [np.inf], [100], n_seeds=2)
    assert figure.accuracy > 0.9
    assert figure.rows_per_client == 99


def test_the_picture_and_the_table_show_what_was_measured(tmp_path):
    figures = [
        PrivacyFigure(data, budget, 10, 99, accuracy, 0.01)
        for data in ("bcw", "pump")
        for budget, accuracy in ((0.1, 0.5), (1.0, 0.75), (np.inf, 0.9))
    ]
    table = privacy_figures.to_markdown(Privacy(tuple(figures)))
    assert "| bcw | 99 | 10 | 0.500 ± 0.010 | 0.750 ± 0.010 | 0.900 ± 0.010 |" in table
    assert "| 0.1 | 1 | no noise |" in table
    assert "bcw, 99 rows a client" in draw_privacy(figures, 10)
    write_privacy_figure(figures, 10, tmp_path / "privacy.svg")
    root = ElementTree.parse(tmp_path / "privacy.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
