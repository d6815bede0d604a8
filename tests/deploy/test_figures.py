"""What docs/federation.md prints of times, bytes and memory is what the benchmark's rows say."""

import re

from benchmarks import federation as benchmark


def test_every_table_on_the_page_is_made_of_its_rows():
    text = benchmark.PAGE.read_text(encoding="utf-8")
    named = [name for _, name, _ in benchmark.MARKS.findall(text)]
    assert named == ["breakdown", "nodes", "simulated"]
    assert benchmark.page_with_tables(text) == text


def test_the_bundle_reached_its_gap_on_real_nodes():
    rows = re.findall(r"\| (\S+) \| bundle \|.*?\| (\d\.\de-\d+) \|", benchmark.table_of("nodes"))
    assert {data for data, _ in rows} == {"bcw", "pump"}
    assert all(float(gap) <= benchmark.TOL for _, gap in rows)
