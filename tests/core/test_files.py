"""Files are whole or not there, leftovers go, and nothing that never ends is read."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from fdrsvm import CorruptDataError
from fdrsvm.core import files
from fdrsvm.core.files import append_whole, read_capped, write_atomically, write_together

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
        "import os, signal, sys; from fdrsvm.core.files import write_atomically\n"
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


def test_files_that_belong_together_are_all_there(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for data in (b"1", b"2"):
        write_together((first, data), (second, data * 2))
        assert (first.read_bytes(), second.read_bytes()) == (data, data * 2)
    assert names(tmp_path) == ["first", "second"]


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_second_file_that_fails_leaves_the_first_as_it_was(
    tmp_path, monkeypatch, is_there, has_links
):
    first, second = tmp_path / "first", tmp_path / "second"
    if is_there:
        first.write_bytes(b"old")
    if not has_links:

        def refuse(*_):
            raise PermissionError("no second names on this disk")

        monkeypatch.setattr(os, "link", refuse)
    replace = os.replace

    def fail(source, target):
        if target == second:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError) as caught:
        write_together((first, b"new"), (second, b"new"))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(second))
    assert names(tmp_path) == (["first"] if is_there else [])
    assert not is_there or first.read_bytes() == b"old"


@needs_posix
@pytest.mark.parametrize("keep", [0, 10, 5000])
def test_a_limit_on_sizes_leaves_nothing_half_written(tmp_path, keep):
    """A real refusal by the system, after a part was taken: a limit on the size of files."""
    first, log = tmp_path / "first", tmp_path / "log"
    log.write_bytes(b"line\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(keep, 5), limits[1]))
    try:
        for write in (
            lambda: write_together((first, b"x"), (tmp_path / "second", bytes(6000))),
            lambda: append_whole(log, bytes(6000)),
        ):
            with pytest.raises(OSError) as caught:
                write()
            assert caught.value.errno == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert names(tmp_path) == ["log"]
    assert log.read_bytes() == b"line\n"
    append_whole(log, b"more\n", on_disk=False)
    append_whole(log, b"last\n")
    assert log.read_bytes() == b"line\nmore\nlast\n"


def test_a_write_that_is_interrupted_takes_its_file_away(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", b"data")
    assert names(tmp_path) == []


def test_an_error_without_a_number_is_passed_on(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("only words")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match=r"^only words$"):
        write_atomically(tmp_path / "a", b"data")
    assert names(tmp_path) == []


@needs_posix
@pytest.mark.parametrize("is_link", [False, True])
def test_a_pipe_or_device_is_written_to_and_stays_what_it_is(tmp_path, is_link):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = pipe
    if is_link:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_together((path, b"streamed"), (tmp_path / "file", b"kept"))
        assert pipe.is_fifo()
        assert os.read(reader, 100) == b"streamed"
    finally:
        os.close(reader)
    assert (tmp_path / "file").read_bytes() == b"kept"


@needs_posix
@pytest.mark.parametrize("order", [1, -1])
def test_nothing_is_streamed_if_a_file_beside_it_fails(tmp_path, monkeypatch, order):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def fail(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(files.os, "replace", fail)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match="Read-only"):
            write_together(*[(tmp_path / "file", b"new"), (pipe, b"streamed")][::order])
        assert os.read(reader, 9) == b""  # nobody has written anything
    finally:
        os.close(reader)
    assert names(tmp_path) == ["pipe"]


@needs_posix
def test_a_stream_that_fails_is_an_error_and_undoes_the_files_beside_it(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "file").write_bytes(b"old")
    write_all = files._write_all

    def full(descriptor, data):
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_all(descriptor, data)

    monkeypatch.setattr(files, "_write_all", full)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match=r"No space left on device: .*pipe"):
            write_together((tmp_path / "file", b"new"), (pipe, b"streamed"))
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file", "pipe"]
