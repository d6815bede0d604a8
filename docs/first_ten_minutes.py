"""Runs what a new user types, and writes it down with what came back.

    python docs/first_ten_minutes.py [--data ai4i2020.tsv]

Every command of docs/first-ten-minutes.md is run in a folder that holds the file of AI4I 2020 only,
one after the other, through the shell; what it prints goes into the page as it is. The file is that
of ``--data``, else of the environment variable FDRSVM_DATA (the file or its folder), else of
../shared/data/ai4i beside the checkout.
"""

# ruff: noqa: E501 - paragraphs and tables are as the page has them

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("first-ten-minutes.md")
ROWS = "ai4i2020.tsv"

HEAD = """# The first ten minutes

What a new user types and sees, with files as they come from machines. This page is the transcript of a
real run: `python docs/first_ten_minutes.py` runs the commands again and records what they print.

```
pip install .          # in a checkout of the project
```

The rows are those of [AI4I 2020](https://archive.ics.uci.edu/dataset/601/ai4i+2020+predictive+maintenance+dataset)
(CC BY 4.0): 10,000 rows of a milling machine, of which few are failures. With files of your own, start at
[Look at the files](#look-at-the-files).
"""

IGNORED = ("UDI", "Product ID", "Type", "TWF", "HDF", "PWF", "OSF", "RNF")
FIT = "fdrsvm fit train --label 'Machine failure' " + " ".join(
    f"--ignore {shlex.quote(name)}" for name in IGNORED
)

STEPS = (
    (
        "## Four plants\n\n"
        "AI4I is one table. A few lines of Python, `four_plants.py`, make four plants of it: each gets a\n"
        "quarter of the rows, in order, and keeps every fifth of them for the test. The plant west\n"
        "writes its files as a spreadsheet of another country does, with semicolons and decimal\n"
        "commas. That does not matter: how a file is written is recognised.",
        "cat four_plants.py",
        f"python four_plants.py {ROWS}",
        "head -n 2 train/north.csv train/west.csv",
    ),
    (
        "## Look at the files\n\n"
        "`check` reads all files and says everything that is wrong with them at once. A *stop* would\n"
        "end training, a *warn* could make the model worthless.",
        "fdrsvm check train; echo $?",
    ),
    (
        "All of that is so, and the warnings matter most: a model would learn by heart a column that\n"
        "numbers the rows; and five flags say which failure it was, so that a model with them would look\n"
        "perfect here and be worth nothing at a running machine, where nobody knows them yet. The last\n"
        "line is what to type next. More in [check.md](check.md).\n\n"
        "## Train\n\n"
        "That line, as it was printed:",
        FIT,
    ),
    (
        "Line by line:\n\n"
        "| it says | that is |\n"
        "|---|---|\n"
        "| 4 clients | a client is whoever has rows of its own: here one plant, called after its file |\n"
        "| scaling minmax | every column is brought to 0 to 1, by its range over all plants; the model file undoes it, so that it takes readings in their own units |\n"
        "| what is looked for is '1' | the fault: of two labels the rarer one |\n"
        "| 5-fold cross-validation | what follows was chosen by training on four fifths of each plant's rows and counting on the last fifth, five times over |\n"
        "| balanced accuracy | the goal: the mean of the share of faults found and the share of healthy rows let pass; 0.5 is guessing. `--goal` names another |\n"
        "| class weight: balanced | faults count as much as healthy rows, although they are rare |\n"
        "| made of: fourier | the score is made of waves across all readings at once, which did clearly better on held-out rows than curves and surfaces did; `--features additive-pairs` has a model that can be read, one reading and one pair of readings after the other ([maps.md](maps.md)) |\n"
        "| radius | how far readings are taken to be off, on average over the rows, in shares of each column's range |\n"
        "| price of a wrong label | a wrong label counts like readings that are off by so much |\n"
        "| threshold of the score | the model gives each row a score; above the threshold it calls it a fault |\n"
        "| on held-out rows | what to expect of new rows from these plants: faults found, and false alarms as a share of healthy rows |\n"
        "| worst-case risk at most | the mean loss if readings and labels are off in the worst way within the radius is no more than this |\n"
        "| lower bound, certified gap | for no model of this kind is less than that bound proved; none is better by more than the gap, relative to the risk. That is proved, not estimated. It is about the scores; the threshold was chosen by counting |\n"
        "| the last table | where the worst-case risk is high, the model fits that plant badly |\n\n"
        "## Is it any good?\n\n"
        "On the rows that were kept for the test, beside what else one could train:",
        "fdrsvm evaluate run/model.safetensors test --compare train",
    ),
    (
        "Read the line `model all` first: the faults found, and what that costs in false alarms. Then the\n"
        "last block. **Gradient boosting, each plant alone, gives an eighth of the false alarms, and misses\n"
        "more than a quarter of the faults.** Look at the plants: at east, which has most faults to learn\n"
        "from, boosting is far ahead (average precision); at the others, which have few, it misses nearly\n"
        "half, and the model that all plants trained together finds all but one.\n\n"
        "Joining pays: models of the plants' own with the same waves (`local`) find ten faults fewer. At\n"
        "north and south they rank rows worse, too; at west better, of seven faults. A few faults are few:\n"
        "the page that comes next says which of such differences may be chance. What to do about it all is\n"
        "said [below](#what-to-expect).\n\n"
        "## Show it to others\n\n"
        "One file, to be opened in a browser, without any link to elsewhere. It opens with what a plant\n"
        "manager asks; these are its first lines, and the mathematics comes after them:",
        "fdrsvm report run/model.safetensors test --row-every '10 min' --compare train",
        "sed -n '/<h3>Does it/,/<h3>Which plant/{s/<[^>]*>//g;s/&#39;/\"/g;p}' report.html | grep .",
    ),
    (
        "## Judge new rows\n\n"
        "`--keep` copies columns, such as an id or a time. A row that cannot be judged does not stop the\n"
        "others: here one reading is missing, in the third row of the file as a spreadsheet counts.",
        "sed '3s/,298[.0-9]*,/,,/' test/north.csv > new.csv",
        "fdrsvm predict run/model.safetensors new.csv --keep UDI --keep 'Product ID' --output labels.csv",
        "head -n 4 labels.csv",
    ),
    (
        "## Alarms that are seldom false\n\n"
        "The threshold above was chosen to find many faults, and gives many false alarms. From healthy\n"
        "rows that were not used in training `alarm` moves it to where a promise holds, of each plant to\n"
        "its own place:",
        "fdrsvm alarm run/model.safetensors test --rate 0.05",
    ),
    (
        "Now there is a promise, and its price stands in the last column: at a plant whose faults hardly\n"
        "look different from healthy rows, fewer of them are found. These rows have set the threshold, so\n"
        "they are no test any more. More in [alarms.md](alarms.md).\n\n"
        "## Onto the machine\n\n"
        "The same model for a PLC, and for any ONNX runtime (`pip install 'fdr-svm[onnx]'`):",
        "fdrsvm export st run/alarms/north.safetensors --name MachineFailure --output north.st",
        "fdrsvm export onnx run/alarms/north.safetensors --output north.onnx",
        "tail -n 17 north.st",
    ),
    (
        "## Another goal\n\n"
        "Settings that belong to a project go into a file; what is typed takes precedence. This one asks\n"
        "for most faults with at most 5 % false alarms, and for probabilities, which `predict` writes in a\n"
        "column of their own ([probabilities.md](probabilities.md)).",
        "cat run.toml",
        "fdrsvm fit --config run.toml --output careful",
        "fdrsvm evaluate careful/model.safetensors test",
        "fdrsvm predict careful/model.safetensors test/west.csv --keep UDI | head -n 3",
    ),
    (
        "The share of false alarms is kept over all plants together, not at each: that is what `alarm` is\n"
        "for.\n\n"
        "## What is proved\n\n"
        "In words, and computed again from the plants' rows:",
        "fdrsvm certify run/model.safetensors train",
    ),
    (
        "## When something is wrong\n\n"
        "One line says what it is, where, and what to do; the exit code is 1. What was forgotten:",
        "fdrsvm fit train; echo $?",
        "fdrsvm fit train --label 'Machine failure'; echo $?",
    ),
    (
        "A cell that is no number, a goal that does not exist, and a promise that needs more rows:",
        "sed '5s/,298[.0-9]*,/,298.2.1,/' test/north.csv > broken.csv",
        FIT.replace("fit train", "fit broken.csv") + "; echo $?",
        "fdrsvm fit train --label 'Machine failure' --goal alarms=1; echo $?",
        "fdrsvm alarm run/model.safetensors test --rate 0.001; echo $?",
    ),
    (
        "## What to expect\n\n"
        "| you have | use |\n"
        "|---|---|\n"
        "| plants with enough faults of their own, trusted labels, and a computer at the machine | gradient boosting at each plant, as `evaluate --compare` shows it for yours: here at east |\n"
        "| plants with few faults, or none, that may not pool their rows | this: one model from all of them; here at north and south |\n"
        "| labels of which some are wrong, sensors that drift | this: say how much, and the guarantee holds for the worst that fits |\n"
        "| a PLC, an inspector, or a question why | this, with `--features additive`: one curve per reading, a proof, and a page |\n\n"
        "Curves and surfaces see one reading, or two together. Where a fault is a product or a difference of\n"
        "more, write it into a column of its own, as an engineer would compute it, and train again. And look\n"
        "at each plant: where the model does clearly worse at one, that plant can make it its own, as plant 4\n"
        "does below.\n\n"
        "## No files at hand, or wrong labels?\n\n"
        "Four plants with the same simulated pump. Each has seen leaks of one size, and one training label\n"
        "in seven is wrong: who knows that can say so, and the threshold is chosen for the true labels.",
        "fdrsvm demo --data pump",
        "fdrsvm fit pump/train --fault leak --label-noise 0.14 --output leaks",
        "fdrsvm evaluate leaks/model.safetensors pump/test",
    ),
    (
        "Plant 4, whose leak is the smallest, is named: the shared model ranks its rows well (average\n"
        "precision), and cuts them at a place that suits the others. So it makes the model its own, on its\n"
        "own computer, from its own rows:",
        "fdrsvm personalise leaks/model.safetensors pump/train/plant-4.csv --how retune --output plant-4.safetensors",
        "fdrsvm evaluate plant-4.safetensors pump/test/plant-4.csv",
    ),
)

PLANTS = Path(__file__).with_name("four_plants.py")
CONFIG = """[data]
folder = "train"
label = "Machine failure"
fault = "1"
ignore = ["UDI", "Product ID", "Type", "TWF", "HDF", "PWF", "OSF", "RNF"]

[decision]
goal = "false-alarms=5%"
probabilities = "shared"
"""

FOOT = """
Of 125 leaks it finds more now, for some more false alarms: [joining.md](joining.md) has what that gives
over ten such pumps, and `--how auto`, which asks the plant's own held-out rows first whether they call
the difference clear. With 100 rows, of which one label in seven is wrong, they do not.

## Where next

- every plant on its own machine, with TLS and its own key:
  `fdrsvm federation init fed --plant north=north.csv --plant south=south.csv`
  ([federation.md](federation.md))
- all commands and settings: [cli.md](cli.md)
- the same from Python: [estimators.md](estimators.md)
"""


def rows_file(given=None):
    """The file of AI4I, or None where there is none; a folder stands for the file in it."""
    beside = Path(__file__).parents[2] / "shared" / "data" / "ai4i"
    place = Path(given or os.environ.get("FDRSVM_DATA") or beside)
    found = place / ROWS if place.is_dir() else place
    return found if found.is_file() else None


def transcript(folder, rows):
    """The page, from commands run in ``folder`` on a copy of the file ``rows``."""
    shutil.copyfile(rows, folder / ROWS)
    shutil.copy(PLANTS, folder)
    (folder / "run.toml").write_text(CONFIG, encoding="utf-8")
    parts = [HEAD]
    for text, *commands in STEPS:
        shown = "".join(f"$ {command}\n{typed(command, folder)}" for command in commands)
        parts.append(f"\n{text}\n\n```\n{shown}```\n")
    return "".join(parts) + FOOT


def typed(command, folder):
    """What a command prints, errors first, as a terminal of 132 columns would show it.

    Errors go through a pipe, so that there is no line that tells how far training is.
    """
    import pty  # only where the page is made: not every system has it

    python = shlex.quote(sys.executable)
    program = f'python() {{ {python} "$@"; }}; fdrsvm() {{ {python} -m fdrsvm "$@"; }}; '
    ours, theirs = pty.openpty()
    with subprocess.Popen(  # noqa: S603 - the commands above
        ["bash", "-c", program + command],  # noqa: S607
        cwd=folder,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "132", "TERM": "xterm", "NO_COLOR": "1"},
    ) as running:
        os.close(theirs)
        printed = b"".join(iter(lambda: read_some(ours), b""))
        errors = running.stderr.read()
    os.close(ours)
    if running.returncode:
        raise SystemExit(f"{command}: exit code {running.returncode}\n{errors}")
    plain = re.sub(r"\x1b\[[0-9;]*m|\r", "", printed.decode("utf-8"))  # nothing is bold on the page
    lines = errors.splitlines() + plain.splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def read_some(terminal):
    """What comes next; nothing once the command has ended, of which Linux makes an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the file of AI4I 2020, or its folder")
    place = rows_file(parser.parse_args().data)
    if place is None:
        parser.error(f"no {ROWS}: give it by --data, or its folder by FDRSVM_DATA")
    with tempfile.TemporaryDirectory() as home:
        PAGE.write_text(transcript(Path(home), place), encoding="utf-8")
