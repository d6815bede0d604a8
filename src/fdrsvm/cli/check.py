"""``fdrsvm check``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fdrsvm.cli.commands import PATH, Command, json_option, takes_data
from fdrsvm.cli.console import page_width, say, say_json, say_words, show_table, warn
from fdrsvm.errors import InvalidInputError

if TYPE_CHECKING:
    from fdrsvm.data.checking import Finding, Report
    from fdrsvm.data.rows import DataSettings

_REFUSED = 1
_WIDE = 140  # columns of a terminal from which on what to do has one of its own


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm check plants/
         fdrsvm check all.csv --client-column plant --label state
         fdrsvm check north.csv south.csv --write-contract contract.json
""",
)
@takes_data
@click.option(
    "--fault", metavar="LABEL", help="Of two classes, the one to find [the rarer one in the data]."
)
@click.option("--contract", type=PATH, help="Data contract (JSON) whose rules are checked too.")
@click.option(
    "--write-contract",
    "proposal",
    type=PATH,
    metavar="FILE",
    help="Write a data contract proposed from these readings, to be looked through.",
)
@json_option
def check(
    data: DataSettings,
    fault: str | None,
    contract: Path | None,
    proposal: Path | None,
    *,
    as_json: bool,
) -> int:
    """Find all that is wrong with data, in all files at once, before training.

    Every finding is a line: "stop" is refused by fit, "warn" is worth a look, "note" is for
    information; with the row as a spreadsheet counts it, and what to do. The last line is what to
    type next. The exit code is 0 if fit takes the data as they are, 1 if there is a "stop".
    """
    from fdrsvm.data.checking import check_data

    if contract is not None and proposal is not None:
        raise click.UsageError("--contract and --write-contract do not go together.")
    if proposal is not None and proposal.exists():
        rule = "must be a new file: a contract that was agreed on is not overwritten"
        raise InvalidInputError("--write-contract", rule, f"{proposal} is there")
    report = check_data(replace(data, contract=contract), fault=fault)
    if proposal is not None and report.contract is not None:
        report.contract.save(proposal)
    written = proposal if report.contract is not None else None
    if as_json:
        say_json(_content(report, written))
    else:
        _show(report, written)
    if proposal is not None and written is None:
        warn("no contract was written: it takes a column of readings in all files and two labels")
    return 0 if report.can_train else _REFUSED


def _content(report: Report, written: Path | None) -> dict[str, object]:
    return {
        "can_train": report.can_train,
        "findings": [asdict(finding) for finding in report.findings],
        "ignore": list(report.ignore),
        "contract": None if written is None else str(written),
        "command": report.command(written),
    }


def _show(report: Report, written: Path | None) -> None:
    _show_findings(report.findings)
    say()
    counts = dict.fromkeys(("stop", "warn", "note"), 0)
    for finding in report.findings:
        counts[finding.severity] += 1
    say_words(
        f"{counts['stop']} to mend before training (stop), {counts['warn']} to look at (warn), "
        f"{counts['note']} for information (note)."
    )
    if written is not None:
        say_words(
            f"Contract: {written}. Its limits, and values that fill gaps, come from these "
            "readings: look through them before you send it to others."
        )
    n_left = len(report.to_mend)
    if n_left:
        asks = "1 finding asks" if n_left == 1 else f"{n_left} findings ask"
        say(f"{asks} for mended files or other options: do that, and check again. Then type:")
    elif report.lacks_values and not (written or report.settings.contract):
        say("Values are missing. To fill them, add --write-contract FILE to this command and type")
        say("what it says; to leave such rows out, type:")
    else:
        say("Type next:")
    say(report.command(written))


def _show_findings(findings: Sequence[Finding]) -> None:
    is_wide = page_width() >= _WIDE
    lines: list[list[str | tuple[str, ...]]] = []
    for one in findings:
        place = [one.client or "all", one.column or "-", "-" if one.row is None else str(one.row)]
        said = (one.what, one.remedy) if is_wide or one.remedy else (one.what,)
        # In a narrow column commands would be torn: they get a line below.
        lines.append([one.severity, *place, *(said if is_wide else [said])])
    last = ["what is wrong", "what to do"] if is_wide else ["what is wrong, what to do"]
    headings = ["", "client", "column", "row", *last]
    show_table(headings, lines, n_left=len(headings))
