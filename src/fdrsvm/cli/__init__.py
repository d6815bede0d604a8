"""The command line: arguments to calls, printing, exit codes. No logic.

Exit codes: 0 done, 1 the command failed (one line on stderr says why), 2 wrong usage, 3 a model was
written but its certificate is not as good as asked for, 4 one was that decides nothing, 130
interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_NEEDED = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors are one line on stderr."""
    try:
        from fdrsvm.cli.application import run
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        print(f"fdrsvm: {error.name} is missing: pip install {error.name}", file=sys.stderr)
        return 1
    return run(arguments)
