"""The measurement of secure aggregation, its short version."""

import pytest
from benchmarks.trust.secure_sums import measure_secure_sums, to_markdown


@pytest.fixture(scope="module")
def measured():
    return measure_secure_sums(sets=("bcw",), n_rounds=10, consortia=(3, 6))


def test_masks_change_objectives_by_rounding_only(measured):
    assert [row.method for row in measured.rows] == ["SM", "ADMM", "bundle, summed"]
    assert measured.largest_difference <= 1e-9
    assert all(row.rounds_plain == row.rounds_secure for row in measured.rows)
    assert measured.rows[-1].gap_secure <= 1e-4


def test_the_cost_is_counted(measured):
    """Masked numbers take two words, and a round two exchanges."""
    for row in measured.rows:
        assert 2.0 * row.bytes_plain < row.bytes_secure < 20_000
    few, more = measured.costs
    assert (few.n_clients, more.n_clients) == (3, 6)
    # A letter up and one down, and a line of text with a key, for each further client.
    assert 3 * 2 * 7 * 8 < more.n_bytes - few.n_bytes < 3 * 500
    assert measured.rounds_per_client["bcw"] < measured.rows[-1].rounds_secure


def test_the_table_has_every_row(measured):
    text = to_markdown(measured)
    assert text.count("| bcw |") == 3
    assert f"{measured.largest_difference:.1e}" in text
