"""Puts a finished run of `fdrsvm reproduce` beside the documentation.

    python docs/publish_reproduction.py reproduction

Rows go packed into docs/reproduction/rows, figures and the record of the run beside them, and every
table that docs/reproduction.md names between two marks is written there again.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from pathlib import Path

from fdrsvm_paper.command import make_tables
from fdrsvm_paper.rows import read_rows

DOCS = Path(__file__).parent
PAGE, KEPT = DOCS / "reproduction.md", DOCS / "reproduction"
MARKS = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def kept_rows():
    """All rows in docs/reproduction."""
    return {path.name.removesuffix(".csv.gz"): read_rows(path) for path in KEPT.glob("rows/*.gz")}


def page_with_tables(text, tables):
    """The page, with the tables that its marks name."""
    return MARKS.sub(lambda mark: f"{mark[1]}{tables[mark[2]].markdown()}{mark[3]}", text)


def publish(source):
    """Everything that is kept of a run."""
    shutil.rmtree(KEPT, ignore_errors=True)
    (KEPT / "rows").mkdir(parents=True)
    for path in sorted((source / "rows").glob("*.csv")):
        packed = gzip.compress(path.read_bytes(), mtime=0)
        (KEPT / "rows" / f"{path.name}.gz").write_bytes(packed)
    for path in sorted((source / "figures").glob("*.png")):
        shutil.copy(path, KEPT / path.name)
    shutil.copytree(source / "tables", KEPT / "tables")
    shutil.copy(source / "run.json", KEPT / "run.json")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with_tables(text, make_tables(kept_rows())), encoding="utf-8")


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
