"""Real processes that end before their time: by a signal, a wrong clock, or a full disk."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fdrsvm import FDRSVC, FDRSVMError
from fdrsvm.deploy.processes import Started, read_list
from tests.deploy.cases import fingerprint, in_process, write_plants
from tests.deploy.live import LONG, Live, free_ports, wait_until

pytestmark = pytest.mark.federation

ENDLESS = ("--set=tol=0.0", "--set=algorithm=subgradient", "--set=max-rounds=5000")
# One of each kind in the shorter run; `make test-federation-all` has them all.
EACH_SIGNAL = (
    signal.SIGTERM,
    pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
)


class Command:
    """`fdrsvm ...` as a process; what it says goes to a file."""

    def __init__(self, folder, *arguments, before=(), **variables):
        self.log = folder / f"command-{time.monotonic_ns()}.log"
        command = [*before, sys.executable, "-m", "fdrsvm", *map(str, arguments)]
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                start_new_session=True,
            )

    @property
    def said(self):
        return self.log.read_text()

    def wait_for(self, words):
        wait_until(lambda: words in self.said or self.process.poll() is not None, LONG)
        assert words in self.said, self.said

    def family(self):
        return Started.of("command", self.process.pid).descendants

    def end(self, number):
        """All that it had started by then, and its exit code."""
        family = self.family()
        self.process.send_signal(number)
        return family, self.process.wait(LONG)


def wait_ended(family):
    wait_until(lambda: not any(one.is_alive for one in family), 10.0)


@pytest.fixture
def short():
    """A folder for temporary files, whose name is short enough for sockets in it."""
    folder = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra `simulation`")
@pytest.mark.parametrize("number", EACH_SIGNAL)
def test_a_signal_to_a_simulation_ends_all_that_it_started(number, tmp_path, short):
    write_plants(tmp_path / "data")
    output = tmp_path / "run"
    arguments = ("federation", "simulate", tmp_path / "data", "--output", output, *ENDLESS)
    command = Command(tmp_path, *arguments, TMPDIR=str(short))
    try:
        command.wait_for("round 2")
        names = [Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in command.family()]
        assert any(b"raylet" in name for name in names)
        family, code = command.end(number)
        assert code == 128 + number, command.said
        assert f"ended by {number.name}" in command.said
        wait_ended(family)
        assert not list(short.iterdir())
    finally:
        command.process.kill()


def test_a_signal_while_a_federation_starts_ends_all_of_it(tmp_path, short):
    files = write_plants(tmp_path / "data", n_plants=2)
    live = Live(tmp_path / "fed", files)
    command = Command(tmp_path, "federation", "up", live.folder, TMPDIR=str(short))
    command.wait_for("plants: starting")
    family, code = command.end(signal.SIGTERM)
    assert len(family) >= 3
    assert code == 128 + signal.SIGTERM, command.said
    wait_ended(family)
    assert read_list(live.folder / "processes.json") == []
    assert not [path for path in short.iterdir() if path.name.startswith("fdrsvm-")]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    files = write_plants(folder / "data", n_plants=2)
    with Live(folder / "fed", files) as live:
        yield live


@pytest.mark.parametrize("number", EACH_SIGNAL)
def test_a_signal_to_a_run_stops_it_and_it_can_be_resumed(number, live, tmp_path):
    output = tmp_path / "run"
    settings = ("--set=algorithm=admm", "--set=tol=0.0", "--set=max-rounds=8")
    arguments = (live.folder, "--output", output, *settings)
    command = Command(tmp_path, "federation", "run", *arguments)
    command.wait_for("round 2")
    before = server_apps(live)
    assert before
    _, code = command.end(number)
    assert code == 128 + number, command.said
    assert "`fdrsvm federation resume` goes on" in command.said
    wait_ended(before)
    again = Command(tmp_path, "federation", "resume", *arguments)
    assert again.process.wait(LONG) == 0, again.said
    there = in_process(live.files, algorithm="admm", tol=0.0, max_rounds=8)
    assert fingerprint(FDRSVC.load(output / "model.safetensors")) == fingerprint(there)


def server_apps(live):
    """The processes of runs."""

    def is_run(one):
        with contextlib.suppress(OSError):
            return b"flwr-serverapp" in Path(f"/proc/{one.pid}/cmdline").read_bytes()
        return False

    return [one for one in live.family("server") if is_run(one)]


def test_a_gap_above_tol_has_an_exit_code_of_its_own(live, tmp_path):
    for rounds, code in ((2, 3), (100, 0)):
        output = tmp_path / str(rounds)
        arguments = (live.folder, "--output", output, f"--set=max-rounds={rounds}")
        command = Command(tmp_path, "federation", "run", *arguments)
        assert command.process.wait(LONG) == code, command.said
        assert ("above tol = 0.0001; allow more rounds" in command.said) == (code == 3)
        assert (output / "model.safetensors").exists()


# --- clocks ---

needs_faketime = pytest.mark.skipif(
    shutil.which("faketime") is None, reason="needs faketime, which sets a process's clock"
)


def stranger(live, folder):
    """The folder of a plant that is not connected: its own port, so that it can start here."""
    shutil.copytree(live.folder / "plants" / "plant-0", folder / "plant")
    text = (folder / "plant" / "client.toml").read_text()
    port = live.server.port + 1
    (folder / "plant" / "client.toml").write_text(text.replace(str(port), str(free_ports(1))))
    return folder / "plant"


@needs_faketime
@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ("+600s", "clock is (599|600|601) s ahead of that of the server"),
        pytest.param(
            "-600s",
            "clock is (599|600|601) s behind that of the server",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "+10s", "clock is (9|10|11) s ahead of that of the server", marks=pytest.mark.slow
        ),
        pytest.param("+400d", "is not valid at", marks=pytest.mark.slow),
    ],
)
def test_a_plant_with_a_wrong_clock_is_told_so(offset, words, live, tmp_path):
    plant = stranger(live, tmp_path)
    before = ("faketime", "-f", offset)
    command = Command(tmp_path, "client", plant, before=before)
    assert command.process.wait(LONG) == 1
    (line,) = [one for one in command.said.splitlines() if one.startswith("fdrsvm: ")]
    assert line.startswith("fdrsvm: plant-0: ")
    assert re.search(words, line), command.said
    assert "set the clock" in line


@needs_faketime
@pytest.mark.slow  # Flower's own starter outlives the node by more than the ten seconds given here
def test_a_clock_that_goes_wrong_later_ends_the_client_with_the_reason(tmp_path):
    files = write_plants(tmp_path / "data", n_plants=1)
    with Live(tmp_path / "fed", files) as live:
        live.kill("plant-0")
        clock = tmp_path / "clock"
        clock.write_text("+0s")
        variables = {
            "LD_PRELOAD": preload(),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
        }
        command = Command(tmp_path, "client", live.folder / "plants" / "plant-0", **variables)
        command.wait_for("SuperNode ID")
        family = command.family()
        clock.write_text("+600s")
        assert command.process.wait(LONG) == 1, command.said
        assert "s ahead of that of the server" in command.said.splitlines()[-1]
        wait_ended(family)


def preload():
    done = subprocess.run(
        ["faketime", "-f", "+0s", "env"], capture_output=True, text=True, check=True
    )
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("LD_PRELOAD=")]
    return line.removeprefix("LD_PRELOAD=")


# --- full disks ---


@contextlib.contextmanager
def small_disk(folder, size):
    """A disk of its own for a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_of_the_server_is_told_where_the_run_was_started(live, tmp_path):
    output = tmp_path / "small"
    with small_disk(output, "48k"):
        arguments = ("--set=algorithm=admm", "--set=tol=0.0", "--set=max-rounds=200")
        command = Command(
            tmp_path, "federation", "run", live.folder, "--output", output, *arguments
        )
        command.wait_for("round 1")
        with contextlib.suppress(OSError), (output / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))
        assert command.process.wait(LONG) == 1
        last = command.said.splitlines()[-1]
        assert "the server cannot write" in last, command.said
        assert "No space left on device" in last
        assert "resume" in last


def test_a_full_disk_of_a_plant_is_told_at_the_server_without_its_path(live, tmp_path):
    state = live.folder / "plants" / "plant-1" / "state"
    with small_disk(state, "64k"):
        (state / "filler").write_bytes(bytes(52 << 10))
        with pytest.raises(FDRSVMError) as caught:
            live.run("full-plant", algorithm="admm", tol=0.0, max_rounds=8)
    told = str(caught.value)
    assert "client 'plant-1'" in told
    assert "memory: must be written at the plant before its answer is sent" in told
    assert "No space left on device" in told
    assert str(live.folder) not in told
    log = (live.folder / "logs" / "plant-1.log").read_text()
    assert str(state.resolve()) in log
