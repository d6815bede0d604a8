"""Runs what a new user types, and writes it down with what came back.

    python docs/first_ten_minutes.py

Every command of docs/first-ten-minutes.md is run in an empty folder, one after the other, through
the shell; what it prints goes into the page as it is.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("first-ten-minutes.md")

HEAD = """# The first ten minutes

What a new user types and sees. This page is the transcript of a real run:
`python docs/first_ten_minutes.py` runs the commands again and records what they print.

```
pip install .          # in a checkout of the project
```
"""

STEPS = (
    (
        "Something to try it on: four plants with the same simulated pump, one CSV each. Each\n"
        "plant has seen leaks of one size, and one training label in seven is wrong.",
        "fdrsvm demo --data pump",
        "cut -d, -f1-4,15 pump/train/plant-1.csv | head -n 3",
    ),
    (
        "Train one model across the plants. The data contract is checked first; its limits scale\n"
        "the features, so no plant has to reveal its extremes. `epsilon` is how far off data\n"
        "may be: 1 % of each feature's range. `--fault` is the class to find.",
        "fdrsvm fit pump/train --contract pump/contract.json --scaling limits "
        "--set epsilon=0.01 --set norm=l2 --fault leak",
    ),
    (
        "The worst-case risk is exact, and no model can be better by more than the certified gap.\n"
        "Is the model any good on other rows? Compare what each plant would have alone, what\n"
        "pooling all rows would give, and what scikit-learn's models would find.",
        "fdrsvm evaluate run/model.safetensors pump/test --compare pump/train",
    ),
    (
        "Three plants lose nothing by joining, and gain the others' leaks (these test files have\n"
        "each plant's own leak only). Plant 4, whose leak is the smallest, is better off alone;\n"
        "pooling all rows would not have helped it. It is named, with what would: its average\n"
        "precision shows that its rows are ranked well and only cut in the wrong place.\n\n"
        "What exactly is proved, in words, and computed again from the plants' rows:",
        "fdrsvm certify run/model.safetensors pump/train",
    ),
    (
        "Label new rows. The scaling is part of the model, so it takes unscaled readings.",
        "fdrsvm predict run/model.safetensors pump/test --output labels.csv",
        "head -n 3 labels.csv",
    ),
    (
        "A page about the model, in one file. It opens with what a plant manager asks: faults\n"
        "found, false alarms a week, who gains by joining. Then training, risk per plant, what\n"
        "the worst case does, and what would flip the decision on a row.",
        "fdrsvm report run/model.safetensors pump/test --row-every '10 min' --compare pump/train "
        "--sample 17",
    ),
    (
        "The same model for a PLC or for any ONNX runtime (`pip install 'fdr-svm[onnx]'`):",
        "fdrsvm export st run/model.safetensors --name LeakScore --alarm-on leak --output leak.st",
        "fdrsvm export onnx run/model.safetensors --output leak.onnx",
        "tail -n 12 leak.st",
    ),
    (
        "When something is wrong, one line says what it is and which rule was broken,\n"
        "and the exit code is 1:",
        "sed '3s/^[^,]*/broken/' pump/train/plant-1.csv > plant-1.csv",
        "fdrsvm fit plant-1.csv; echo $?",
        "fdrsvm fit pump/train --set epsilonn=0.01; echo $?",
    ),
    (
        "Settings that belong to a project go into a file; the command line takes precedence.",
        "cat run.toml",
        "fdrsvm fit --config run.toml --set tol=1e-6 --output exact",
    ),
)

CONFIG = """[data]
folder = "pump/train"
contract = "pump/contract.json"
fault = "leak"

[scaling]
method = "limits"

[model]
estimator = "FDRSVC"
epsilon = 0.01
kappa = 1.0
norm = "l2"
"""

FOOT = """
## Where next

- every plant on its own machine, with TLS and its own key:
  `fdrsvm federation init fed --plant north=north.csv --plant south=south.csv`
  ([federation.md](federation.md))
- all commands and settings: [cli.md](cli.md)
- the same from Python: [estimators.md](estimators.md)
"""


def transcript(folder):
    """The page, from commands run in ``folder``."""
    (folder / "run.toml").write_text(CONFIG, encoding="utf-8")
    parts = [HEAD]
    for text, *commands in STEPS:
        shown = "".join(f"$ {command}\n{typed(command, folder)}" for command in commands)
        parts.append(f"\n{text}\n\n```\n{shown}```\n")
    return "".join(parts) + FOOT


def typed(command, folder):
    """What a command prints, errors included, as a terminal would show it."""
    program = f'fdrsvm() {{ {shlex.quote(sys.executable)} -m fdrsvm "$@"; }}; '
    done = subprocess.run(  # noqa: S603 - the commands above
        ["bash", "-c", program + command],  # noqa: S607
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        PAGE.write_text(transcript(Path(home)), encoding="utf-8")
