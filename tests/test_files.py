"""Files are whole or not there, leftovers go, and nothing that never ends is read."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from fdrsvm import CorruptDataError, files
from fdrsvm.files import read_capped, write_atomically

needs_posix = pytest.mark.skipif(os.name != "posix", reason="about pipes, links and signals")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "a"
    for data in (b"", b"one", b"two" * 100_000):
        write_atomically(path, data)
        assert read_capped(path, len(data)) == data
    assert names(tmp_path) == ["a"]
    with pytest.raises(CorruptDataError, match="300000 bytes, at most 299999 are allowed"):
        read_capped(path, 299_999)


@needs_posix
def test_what_a_killed_write_leaves_goes_with_the_next_write_of_that_file(tmp_path):
    path = tmp_path / "model"
    write_atomically(path, b"old")
    program = (
        "import os, signal, sys; from fdrsvm.files import write_atomically\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(sys.argv[1], b'new')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program, str(path)], env=environment)
        assert done.returncode == -signal.SIGKILL
        assert len(names(tmp_path)) == 2  # the second took away what the first left
    assert path.read_bytes() == b"old"
    write_atomically(tmp_path / "another", b"x")
    assert len(names(tmp_path)) == 3  # it may be another process's
    write_atomically(path, b"new")
    assert names(tmp_path) == ["another", "model"]
    assert path.read_bytes() == b"new"


def test_a_write_whose_temporary_file_was_taken_away_is_done_again(tmp_path, monkeypatch):
    path, replace, tries = tmp_path / "a", os.replace, []

    def with_a_rival(source, target):
        tries.append(source)
        if len(tries) == 1:
            write_atomically(path, b"rival")  # takes ours for a leftover
        replace(source, target)

    monkeypatch.setattr(os, "replace", with_a_rival)
    write_atomically(path, b"ours")
    assert len(tries) == 3
    assert path.read_bytes() == b"ours"
    assert names(tmp_path) == ["a"]


def test_many_writers_of_one_file_all_succeed(tmp_path):
    path = tmp_path / "a"
    contents = [bytes([k]) * 10_000 for k in range(6)]

    def write(data):
        for _ in range(20):
            write_atomically(path, data)

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert not path.exists() or path.read_bytes() in contents
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert names(tmp_path) == ["a"]


def test_a_name_as_long_as_a_name_can_be_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_atomically(path, b"data")
    assert path.read_bytes() == b"data"


def test_a_folder_that_cannot_be_listed_or_synced_is_no_obstacle(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(files.os, "open", refuse)
    write_atomically(tmp_path / "a", b"data")
    assert (tmp_path / "a").read_bytes() == b"data"


@needs_posix
@pytest.mark.parametrize("name", ["pipe", "zero", "linked pipe"])
def test_a_pipe_or_a_device_is_refused_at_once(name, tmp_path):
    path = tmp_path / name
    if name == "zero":
        path.symlink_to("/dev/zero")
    elif name == "pipe":
        os.mkfifo(path)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    with pytest.raises(CorruptDataError, match="not an ordinary file"):
        read_capped(path, 100)


def test_a_write_that_fails_names_the_file_that_was_asked_for(tmp_path):
    (tmp_path / "folder").mkdir()
    for path, kind in (
        (tmp_path / "no" / "file", FileNotFoundError),
        (tmp_path / "folder", OSError),
    ):
        with pytest.raises(kind) as caught:
            write_atomically(path, b"data")
        assert (caught.value.filename, caught.value.filename2) == (str(path), None)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@needs_posix
def test_a_link_is_followed_and_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"data")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_capped(tmp_path / "link", 4) == b"data"
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        read_capped(tmp_path, 4)
