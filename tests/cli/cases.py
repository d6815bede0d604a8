"""Clients' files, and the program as a process and in this one."""

import contextlib
import csv
import os
import pty
import subprocess
import sys

import numpy as np

from fdrsvm.cli import main

FEATURES = ("flow", "pressure", "temperature")
SCALES, OFFSETS = np.array([4.0, 0.5, 30.0]), np.array([30.0, 4.0, 300.0])
CLIENTS = ("north", "south", "west")


def run(*arguments, **options):
    """The program in a process of its own."""
    command = [sys.executable, "-m", "fdrsvm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def on_a_terminal(*arguments, is_output=False, **environment):
    """What a terminal gets as stderr, and stdout as a pipe gets it; or the other way round."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fdrsvm", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color", **environment}
    ends = ("stderr", "stdout") if is_output else ("stdout", "stderr")
    streams = dict(zip(ends, (subprocess.PIPE, theirs), strict=True))
    process = subprocess.Popen(command, env=environment, **streams)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 4096):
            seen += part
    os.close(ours)
    piped = process.communicate()[is_output]
    assert process.returncode == 0
    return seen.decode(), piped.decode()


def call(capsys, *arguments):
    """Exit code, stdout and stderr of the program in this process."""
    code = main([str(each) for each in arguments])
    return code, *capsys.readouterr()


def error_line(capsys, *arguments, code=1):
    """The only line on stderr, of a command that must fail."""
    found, _, err = call(capsys, *arguments)
    assert found == code, err
    (line,) = err.splitlines()
    assert "Traceback" not in line
    return line


def rows_of(client, n_rows=40, n_classes=2):
    """Readings in units of their own, and labels of which some are wrong."""
    rng = np.random.default_rng(CLIENTS.index(client))
    X = rng.normal(size=(n_rows, 3))
    names = ("healthy", "leak", "worn")[:n_classes]
    score = X @ [1.0, -0.6, 0.2]
    codes = np.digitize(score, [0.0] if n_classes == 2 else [-0.5, 0.5])
    wrong = rng.random(n_rows) < 0.1
    codes[wrong] = rng.integers(n_classes, size=wrong.sum())
    return X * SCALES + OFFSETS, np.array(names)[codes]


def write_csv(path, X, y=None, *, label="label", **columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        extra = list(columns)
        writer.writerow([*FEATURES, *extra, *([] if y is None else [label])])
        for n, row in enumerate(X.tolist()):
            more = [columns[name][n] for name in extra]
            writer.writerow([*row, *more, *([] if y is None else [y[n]])])
    return path


def write_clients(folder, **options):
    """One file per client; their rows, one under the other, and whose they are."""
    folder.mkdir(parents=True)
    parts = {name: rows_of(name, **options) for name in CLIENTS}
    for name, (X, y) in parts.items():
        write_csv(folder / f"{name}.csv", X, y)
    X, y = (np.concatenate(each) for each in zip(*parts.values(), strict=True))
    return X, y, np.repeat(CLIENTS, [len(y) for _, y in parts.values()])
