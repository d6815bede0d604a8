"""Real federations: seconds to start, seconds a round, bytes, memory, and where a round goes.

    OMP_NUM_THREADS=1 python -m benchmarks.federation [nodes] [cold] [breakdown] [simulated]
        [tables] [--max-rounds 220] [--data bcw,pump] [--methods bundle,admm,subgradient]

`nodes`      4 plants as processes on loopback with TLS and keys, each data set and method
`cold`       the same with Flower's own client processes and poll times: the baseline
`breakdown`  what one answer costs a client process, step by step
`simulated`  50 and 500 simulated clients, rounds of the bundle and of ADMM
`tables`     the rows, as tables in docs/federation.md

Without arguments all of them, about an hour on two idle cores. Rows are added to
benchmarks/results/federation_*.csv as they come, with the time and the machine's load, so that a
busy machine can be told. Data: BCW as in benchmarks/federated.py, and the pump ("both": unequal
plants and few faults), normalised. Known unfairness: four plants share two cores here, so client
processes wait for each other, which they would not on machines of their own.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.federated import pump_like, uci_parts
from fdrsvm.datasets import make_pump
from fdrsvm.deploy.engine import environment, node_status, supernode_arguments
from fdrsvm.deploy.founding import init
from fdrsvm.deploy.layout import ClientFolder
from fdrsvm.deploy.processes import family_memory, read_list, start, write_list
from fdrsvm.deploy.runs import run, simulate
from fdrsvm.deploy.trial import down, log_of, server_folder, start_one, status, up
from fdrsvm.federated.audit import read_audit

RESULTS = Path(__file__).parent / "results"
METHODS = {
    "bundle": {"algorithm": "bundle", "fit-intercept": False},
    "admm": {"algorithm": "admm", "rho": 0.01, "fit-intercept": False},
    "subgradient": {"algorithm": "subgradient", "step-size": 100.0, "fit-intercept": False},
}
TOL = 1e-4
PORT = 17400
PAGE = Path(__file__).parents[1] / "docs" / "federation.md"
MARKS = re.compile(r"(<!-- table federation_(\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEADINGS = {
    "clients": "clients",
    "method": "method",
    "data": "data",
    "step": "step",
    "median_ms": "ms",
    "start_seconds": "start s",
    "rounds": "rounds",
    "gap": "certified gap",
    "total_seconds": "run s",
    "round_median": "s a round, median",
    "round_p95": "p95",
    "bytes_down": "bytes down",
    "bytes_up": "bytes up",
    "server_MB": "server MB",
    "plant_MB": "plant MB",
    "peak_MB": "peak MB, all processes",
    "load": "load",
}
PARTS = ["breakdown", "nodes", "cold", "simulated", "tables"]
METHOD_NAMES = {"admm": "ADMM, rho = 0.01", "subgradient": "SM, gamma = 100"}


def parts_of(name):
    if name == "bcw":
        return uci_parts("bcw")
    if name == "pump":
        return make_pump("both", random_state=0).parts(normalised=True)
    return pump_like(int(name))


def write_data(folder, parts):
    """A CSV a plant; labels in words."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for g, (X, y) in enumerate(parts):
        path = folder / f"plant-{g:03d}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"x{k}" for k in range(X.shape[1])), "label"])
            for row, label in zip(np.asarray(X), y, strict=True):
                writer.writerow([*map(repr, map(float, row)), "fault" if label > 0 else "healthy"])
        files[path.stem] = path
    return files


def add_row(name, row):
    path = RESULTS / f"federation_{name}.csv"
    row = {
        **row,
        "load": f"{os.getloadavg()[0]:.1f}",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if is_new:
            writer.writeheader()
        writer.writerow(row)
    print(*row.values(), flush=True)


def run_figures(output, n_clients):
    """Of a finished run, from its audit log."""
    events = list(read_audit(output / "audit.jsonl"))
    rounds = [one for one in events if one["event"] == "round"]
    seconds = sorted(one["seconds"] for one in rounds)
    begin, end = (datetime.fromisoformat(events[k]["time"]) for k in (0, -1))
    n_messages = n_clients * len(rounds)
    return {
        "rounds": len(rounds),
        "gap": f"{rounds[-1]['gap']:.1e}",
        "total_seconds": f"{(end - begin).total_seconds():.1f}",
        "round_median": f"{statistics.median(seconds):.2f}",
        "round_p95": f"{seconds[int(0.95 * (len(seconds) - 1))]:.2f}",
        "bytes_down": round(sum(one["bytes_down"] for one in rounds) / n_messages),
        "bytes_up": round(sum(one["bytes_up"] for one in rounds) / n_messages),
    }


def start_cold(folder):
    """Server as always, plants with Flower's own command and poll times."""
    write_list(folder / "processes.json", [])
    start_one(folder, "server")
    plants = sorted((folder / "plants").iterdir())
    wait(lambda: len(node_status(server_folder(folder))) == len(plants))
    for path in plants:
        client = ClientFolder.read(path)
        variables = environment(client.flower_home)
        del variables["FLWR_SUPEREXEC_TASK_POLL_INTERVAL"]
        command = [
            str(Path(sys.executable).with_name("flower-supernode")),
            *supernode_arguments(client),
        ]
        one = start(path.name, command, log_of(folder, path.name), variables)
        write_list(folder / "processes.json", [*read_list(folder / "processes.json"), one])
    wait(lambda: set(node_status(server_folder(folder)).values()) == {"online"})


def wait(holds, seconds=300.0):
    end = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except Exception as error:
            print(f"not yet: {error}")
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.5)


def bench_nodes(names, methods, max_rounds, *, cold=False):
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "federation"
            files = write_data(Path(scratch) / "data", parts_of(name))
            init(folder, files, port=PORT)
            begin = time.monotonic()
            try:
                start_cold(folder) if cold else up(folder, timeout=600.0, tell=print)
                started = time.monotonic() - begin
                for method in methods:
                    output = folder / f"run-{method}"
                    config = {**METHODS[method], "tol": TOL, "max-rounds": max_rounds}
                    run(server_folder(folder), output, config, tell=print)
                    memory = {one.name: one.megabytes for one in status(folder)}
                    plants = [value for key, value in memory.items() if key != "server"]
                    add_row(
                        "nodes",
                        {
                            "clients": "Flower's own" if cold else "warm",
                            "data": name,
                            "method": method,
                            "start_seconds": f"{started:.1f}",
                            **run_figures(output, len(files)),
                            "server_MB": f"{memory['server']:.0f}",
                            "plant_MB": f"{statistics.mean(plants):.0f}",
                        },
                    )
            finally:
                down(folder)


STEPS = """
import sys, time
clock = [time.perf_counter()]
def lap(name):
    clock.append(time.perf_counter())
    print(f"{name},{1000 * (clock[-1] - clock[-2]):.1f}")
import flwr.supernode.cli
lap("import Flower's client")
import fdrsvm.deploy.client_app
lap("import fdrsvm")
from fdrsvm.deploy.client_side import *
from fdrsvm.deploy.plant import plant_from_config, read_plant
plant = plant_from_config({"client-id": "a", "data": sys.argv[1], "state": sys.argv[2]}, {})
rows = read_plant(plant)
lap("read the CSV")
from dataclasses import replace
task = replace(Task(), classes=rows.labels)
problem = make_problem(plant, rows, task)
lap("make the problem")
import numpy as np
from fdrsvm.federated.methods import Bundle, describe
from fdrsvm.federated.client_memory import NO_MEMORY
from fdrsvm.federated.messages import Broadcast
width = problem.width
asked = {"points": np.zeros((1, width)), "prox": np.array(0.0), "price": np.zeros(width)}
memory, update = answer(problem, NO_MEMORY, Broadcast("r", 1, "a", describe(Bundle()), asked))
lap("load machine code and answer")
memory, update = answer(problem, NO_MEMORY, Broadcast("r", 1, "a", describe(Bundle()), asked))
lap("answer again")
MemoryFile(plant.memory_folder, "r", rows.digest).write(memory)
lap("write the memory")
data = encode(update)
lap("encode")
"""


def bench_breakdown(names, repeats=5):
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            files = write_data(Path(scratch) / "data", parts_of(name))
            command = [sys.executable, "-c", STEPS, str(next(iter(files.values()))), scratch]
            laps = []
            for _ in range(repeats + 1):  # the first loads libraries
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                laps.append([line.rsplit(",", 1) for line in done.stdout.split("\n") if line])
            for k, (step, _) in enumerate(laps[0]):
                found = [float(one[k][1]) for one in laps[1:]]
                add_row(
                    "breakdown",
                    {"data": name, "step": step, "median_ms": f"{statistics.median(found):.1f}"},
                )


class PeakMemory(threading.Thread):
    """The most memory that this process and all that it started had together, Ray's included."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes = 0
        self.over = threading.Event()

    def run(self):
        """A look every two seconds."""
        while not self.over.wait(2.0):
            self.bytes = max(self.bytes, family_memory(os.getpid()))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def bench_simulated(sizes, methods, n_rounds=10):
    for size in sizes:
        for method in methods:
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                write_data(folder / "data", parts_of(str(size)))
                config = {**METHODS[method], "tol": 0.0, "max-rounds": n_rounds}
                config |= {"join-deadline": 1200.0, "deadline": 1200.0}
                begin = time.monotonic()
                with PeakMemory() as peak:
                    simulate(folder / "data", folder / "run", config, tell=print)
                add_row(
                    "simulated",
                    {
                        "clients": size,
                        "method": method,
                        "command_seconds": f"{time.monotonic() - begin:.1f}",
                        **run_figures(folder / "run", size),
                        "peak_MB": f"{peak.bytes / 1e6:.0f}",
                    },
                )


def table_of(name):
    """A file of rows in Markdown."""
    with (RESULTS / f"federation_{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [column for column in rows[0] if column in HEADINGS]
    lines = [[HEADINGS[column] for column in columns], ["---"] * len(columns)]
    lines += [[METHOD_NAMES.get(row[column], row[column]) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page_with_tables(text):
    """The page, with the tables that its marks name."""
    return MARKS.sub(lambda mark: f"{mark[1]}{table_of(mark[2])}{mark[3]}", text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--max-rounds", type=int, default=220)
    parser.add_argument("--data", default="bcw,pump")
    parser.add_argument("--methods", default="bundle,admm,subgradient")
    parser.add_argument("--sizes", default="50,500")
    arguments = parser.parse_args()
    names, methods = arguments.data.split(","), arguments.methods.split(",")
    if "breakdown" in arguments.parts:
        bench_breakdown(names)
    if "nodes" in arguments.parts:
        bench_nodes(names, methods, arguments.max_rounds)
    if "cold" in arguments.parts:
        bench_nodes(names[:1], ["bundle"], arguments.max_rounds, cold=True)
    if "simulated" in arguments.parts:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        bench_simulated(sizes, [method for method in methods if method != "subgradient"])
    if "tables" in arguments.parts:
        PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
