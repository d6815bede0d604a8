"""Fetching and keeping, against a server on this machine."""

import dataclasses
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from fdrsvm import FDRSVMError, InvalidInputError
from fdrsvm.datasets import DataError, DataWarning, FetchError, fetch, load_uci, uci

from .uci_folder import FOLDER, needs_folder

# In UCI's layout: row names first, the target not last, feature names that repeat, CRLF.
TOY_CSV = (
    b"name,MDVP:Jitter,MDVP:Jitter,status,PPE\r\n"
    b"phon_R01_S01_1,0.10,2,1,-3e-2\r\n"
    b"phon_R01_S01_2,0.25,4,1,0\r\n"
    b"phon_R01_S02_1,0.50,8,0,7\r\n"
)
TOY_X = np.array([[0.1, 2.0, -0.03], [0.25, 4.0, 0.0], [0.5, 8.0, 7.0]])
TOY = uci.UciSet(
    name="toy",
    title="Toy",
    uci_id=999,
    file="toy.csv",
    target="status",
    negative={"0": 1},
    positive={"1": 2},
    features=("jitter_percent", "jitter_absolute", "PPE"),
    sha256=uci.content_sha256(TOY_X, ["1", "1", "0"]),
    recordings="name",
    recordings_sha256=hashlib.sha256(b"phon_R01_S01_1\nphon_R01_S01_2\nphon_R01_S02_1").hexdigest(),
)


class Server:
    """Answers with what ``answers`` says for a path: a body, and how to spoil it."""

    def __init__(self):
        self.answers, self.asked = {}, []
        server = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self):
                server.asked.append(self.path)
                status, body, length = server.answer(self.path)
                self.send_response(status)
                if length is not None:
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/static/public"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def answer(self, path):
        queue = self.answers.get(path, [(404, b"", 0)])
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def put(self, *bodies, uci_id=999, status=200, missing=0, say_length=True):
        self.answers[f"/static/public/{uci_id}/data.csv"] = [
            (status, body, len(body) + missing if say_length else None) for body in bodies
        ]

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setenv("FDRSVM_UCI_URL", server.url)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """An empty cache, the toy data set, no folder, no proxy, no waiting between attempts."""
    monkeypatch.setenv("FDRSVM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FDRSVM_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "_PAUSE", 0.0)
    monkeypatch.setattr(fetch, "_TIMEOUT", 5.0)
    monkeypatch.setattr(uci, "SETS", uci.SETS | {"toy": TOY})
    monkeypatch.setattr(uci, "UCI_NAMES", (*uci.UCI_NAMES, "toy"))
    return tmp_path / "cache"


def assert_is_toy(data):
    np.testing.assert_array_equal(data.X, TOY_X)
    np.testing.assert_array_equal(data.y, [1.0, 1.0, -1.0])
    assert data.feature_names == TOY.features
    assert data.groups.tolist() == ["phon_R01_S01", "phon_R01_S01", "phon_R01_S02"]


def test_a_set_is_fetched_once_and_then_comes_from_the_cache(server, own_cache):
    server.put(TOY_CSV)
    first = load_uci("toy")
    assert_is_toy(first)
    assert first.source == f"{server.url}/999/data.csv"
    second = load_uci("toy", download=False)
    assert_is_toy(second)
    assert second.source == str(own_cache / "toy.csv")
    assert len(server.asked) == 1
    assert [path.name for path in own_cache.iterdir()] == ["toy.csv"]  # no scratch files left


def test_the_kept_file_serves_as_a_folders_file(server, own_cache):
    server.put(TOY_CSV)
    load_uci("toy")
    assert_is_toy(load_uci("toy", own_cache))


def test_content_with_another_checksum_is_refused_and_not_kept(server, own_cache):
    server.put(TOY_CSV.replace(b"0.25", b"0.26"))
    with pytest.raises(DataError, match=rf"{server.url}/999/data\.csv.*SHA-256"):
        load_uci("toy")
    assert not (own_cache / "toy.csv").exists()


def test_swapped_row_names_are_refused(server):
    server.put(TOY_CSV.replace(b"S02_1", b"S03_1"))
    with pytest.raises(DataError, match="row names"):
        load_uci("toy")


def test_a_file_cut_short_is_asked_for_again(server):
    server.answers["/static/public/999/data.csv"] = [
        (200, TOY_CSV[:50], len(TOY_CSV)),
        (200, TOY_CSV, len(TOY_CSV)),
    ]
    assert_is_toy(load_uci("toy"))
    assert len(server.asked) == 2


def test_a_file_always_cut_short_is_reported_and_not_kept(server, own_cache):
    server.put(TOY_CSV[:50], missing=len(TOY_CSV) - 50)
    with pytest.raises(FetchError, match=r"came in short|broke") as caught:
        load_uci("toy")
    assert "3 attempts" in str(caught.value)
    assert not (own_cache / "toy.csv").exists()


def test_a_cut_that_the_length_does_not_show_is_found_by_the_rows(server):
    server.put(TOY_CSV[: TOY_CSV.index(b"phon_R01_S02")], say_length=False)
    with pytest.raises(DataError, match="must have 3 rows; the file has 2"):
        load_uci("toy")


def test_a_web_page_in_place_of_the_file_is_refused(server):
    server.put(b"<html><body>Please sign in</body></html>")
    with pytest.raises(DataError, match="must have one column 'status'"):
        load_uci("toy")


def test_a_server_in_trouble_is_asked_again_but_a_missing_file_is_not(server):
    server.put(b"", status=503)
    with pytest.raises(FetchError, match=r"503.*3 attempts"):
        load_uci("toy")
    assert len(server.asked) == 3
    server.put(b"", status=404)
    with pytest.raises(FetchError, match="answered 404"):
        load_uci("toy")
    assert len(server.asked) == 4


def test_a_file_without_end_is_not_read_to_it(server, monkeypatch):
    monkeypatch.setattr(fetch, "_MAX_BYTES", 100)
    server.put(b"1," * 20_000)
    with pytest.raises(FetchError, match="larger than 100 bytes"):
        load_uci("toy")
    assert len(server.asked) == 1


def test_without_a_network_the_message_says_which_file_to_put_where(server):
    server.close()
    with pytest.raises(FetchError) as caught:
        load_uci("toy")
    assert isinstance(caught.value, FDRSVMError)
    assert isinstance(caught.value, OSError)
    message = str(caught.value)
    for part in ("no connection", "toy.csv", "data_home=", "FDRSVM_DATA", "'label'", "3 columns"):
        assert part in message


def test_a_folder_without_the_file_is_named(server, tmp_path):
    server.close()
    with pytest.raises(FetchError) as caught:
        load_uci("toy", tmp_path)
    assert f"into {tmp_path}, where it is not now" in str(caught.value)


def test_a_folder_without_the_file_does_not_stop_fetching(server, tmp_path):
    server.put(TOY_CSV)
    assert_is_toy(load_uci("toy", tmp_path))
    assert not (tmp_path / "toy.csv").exists()  # the user's folder is not written to


def test_download_can_be_forbidden(server):
    server.put(TOY_CSV)
    with pytest.raises(FetchError, match=r"download is False.*toy\.csv"):
        load_uci("toy", download=False)
    assert server.asked == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"0.25", b"0.52"),
        lambda content: content.replace(b"S02", b"S01"),
        lambda content: b"",
        lambda content: b"\x00\xff" * 40,
    ],
    ids=["cut", "a digit changed", "a name changed", "emptied", "not text"],
)
def test_a_damaged_cache_is_fetched_again_with_a_warning(server, own_cache, spoil):
    server.put(TOY_CSV)
    load_uci("toy")
    kept = own_cache / "toy.csv"
    sound = kept.read_bytes()
    kept.write_bytes(spoil(sound))
    with pytest.warns(DataWarning, match="fetched again.*damaged"):
        assert_is_toy(load_uci("toy"))
    assert kept.read_bytes() == sound
    assert len(server.asked) == 2


def test_a_damaged_cache_without_a_network_is_reported_not_used(server, own_cache):
    server.put(TOY_CSV)
    load_uci("toy")
    kept = own_cache / "toy.csv"
    kept.write_bytes(kept.read_bytes().replace(b"0.25", b"0.52"))
    server.close()
    with pytest.raises(FetchError, match="kept copy is damaged and was not used"):
        load_uci("toy")


def test_a_cache_that_cannot_be_written_is_a_warning(server, own_cache):
    own_cache.write_text("a file where the folder should be")
    server.put(TOY_CSV)
    with pytest.warns(DataWarning, match="could not be kept"):
        assert_is_toy(load_uci("toy"))


def test_the_progress_bar_goes_to_standard_error(server, capsys):
    server.put(TOY_CSV)
    load_uci("toy", progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Toy [" in shown.err
    assert "100 %" in shown.err
    assert shown.err.endswith("\n")


def test_the_progress_bar_counts_where_the_length_is_unknown(server, capsys):
    server.put(TOY_CSV, say_length=False)
    load_uci("toy", progress=True)
    assert " kB" in capsys.readouterr().err


def test_no_bar_is_drawn_where_nobody_looks(server, capsys):
    server.put(TOY_CSV)
    load_uci("toy")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("url", ["file:///etc", "ftp://x/y", "nonsense"])
def test_a_mirror_must_be_a_web_address(monkeypatch, url):
    monkeypatch.setenv("FDRSVM_UCI_URL", url)
    with pytest.raises(InvalidInputError, match="FDRSVM_UCI_URL: must start with http"):
        load_uci("toy")


def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("FDRSVM_CACHE")
    monkeypatch.setattr(fetch.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert fetch.cache_folder() == tmp_path / "xdg" / "fdrsvm"
    monkeypatch.setattr(fetch.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert fetch.cache_folder() == tmp_path / "local" / "fdrsvm"
    monkeypatch.setattr(fetch.sys, "platform", "darwin")
    assert fetch.cache_folder().parts[-3:] == ("Library", "Caches", "fdrsvm")


def in_uci_layout(item, content):
    """A folder's file as UCI serves it: the target under its own name, before the last feature."""
    lines = [line.split(",") for line in content.decode().splitlines()]
    lines[0][-1] = item.target
    moved = [[*row[:-2], row[-1], row[-2]] for row in lines]
    return "\r\n".join(",".join(row) for row in moved).encode()


@needs_folder
@pytest.mark.parametrize("name", ["banknote", "sonar", "mammographic", "parkinsons", "rice", "ukm"])
def test_a_fetched_set_is_the_same_as_the_folders(name, server):
    item = uci.SETS[name]
    server.put(in_uci_layout(item, (FOLDER / item.file).read_bytes()), uci_id=item.uci_id)
    ours = load_uci(name, FOLDER)
    for _ in range(2):  # fetched, then kept
        theirs = load_uci(name)
        np.testing.assert_array_equal(theirs.X, ours.X)
        np.testing.assert_array_equal(theirs.y, ours.y)
        assert theirs.feature_names == ours.feature_names
    assert len(server.asked) == 1


def test_every_set_is_recorded_in_full():
    for item in uci.SETS.values():
        assert len(item.sha256) == 64
        assert len(set(item.features)) == len(item.features)
        assert not set(item.negative) & set(item.positive)
        with pytest.raises(dataclasses.FrozenInstanceError):
            item.file = "other.csv"
