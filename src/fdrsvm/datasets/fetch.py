"""Files from the network, kept in a cache. The only module that opens an address or the cache.

Environment variables: FDRSVM_CACHE names the cache folder; FDRSVM_UCI_URL names a mirror of
https://archive.ics.uci.edu/static/public, where ``<id>/data.csv`` is a data set.

Not by pooch, of which 1.9.0 was read: it checks the bytes of a file, where ours is checked by what
it says, since UCI may write the same numbers differently; it reads a file to the end however large
it is, and asks again after every error of the server, a missing file included. A downloader of our
own would mend the last two, and would be the forty lines of ``download`` again, with requests,
platformdirs, packaging and (for the bar) tqdm as further dependencies.
"""

from __future__ import annotations

import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from pathlib import Path

from fdrsvm.core.files import write_atomically
from fdrsvm.errors import FDRSVMError, InvalidInputError

CACHE_VARIABLE = "FDRSVM_CACHE"
URL_VARIABLE = "FDRSVM_UCI_URL"

# The addresses that UCI's own Python package uses. They could not be tried where this was written.
_UCI_URL = "https://archive.ics.uci.edu/static/public"
_TIMEOUT = 30.0  # s without a byte
_ATTEMPTS = 3
_PAUSE = 1.0  # s before the second attempt, twice that before the third
_MAX_BYTES = 32 * 2**20  # the largest data set has half a megabyte
_CHUNK = 2**14
_BAR_WIDTH = 30


class FetchError(FDRSVMError, OSError):
    """A file could not be fetched; the message says what to put where instead."""


class DataWarning(UserWarning):
    """The data were loaded, but not quite as expected."""


class _TransientError(Exception):
    """A failure that another attempt may not meet."""


def cache_folder() -> Path:
    """Where fetched files are kept: FDRSVM_CACHE, or the platform's usual place."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fdrsvm"


def read_cached(file: str) -> bytes | None:
    """A file of the cache, or None if it is not there or cannot be read."""
    try:
        return (cache_folder() / file).read_bytes()
    except OSError:
        return None


def write_cached(file: str, content: bytes) -> None:
    """Keep a file. It appears whole or not at all; if it cannot be kept, that is a warning."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / file, content)
    except OSError as error:
        message = f"{file} was fetched but could not be kept in {folder}: {error}"
        warnings.warn(message, DataWarning, stacklevel=4)


def uci_address(uci_id: int) -> str:
    """Where a data set's CSV is."""
    base = os.environ.get(URL_VARIABLE) or _UCI_URL
    if urllib.parse.urlsplit(base).scheme not in ("http", "https"):
        raise InvalidInputError(URL_VARIABLE, "must start with http:// or https://", f"{base!r}")
    return f"{base.rstrip('/')}/{uci_id}/data.csv"


def download(address: str, title: str, *, progress: bool | None = None) -> bytes:
    """The whole file at an http or https address; `FetchError` with the reason if it fails.

    ``progress`` None draws a bar if standard error is a terminal.
    """
    show = sys.stderr.isatty() if progress is None else progress
    reason = ""
    for attempt in range(_ATTEMPTS):
        time.sleep(_PAUSE * attempt)
        try:
            return _download_once(address, title if show else None)
        except _TransientError as error:
            reason = str(error)
    raise FetchError(f"{address}: {reason} ({_ATTEMPTS} attempts)")


def _download_once(address: str, title: str | None) -> bytes:
    """``title`` None draws no bar."""
    request = urllib.request.Request(  # noqa: S310 -- uci_address has checked the scheme
        address, headers={"User-Agent": "fdrsvm", "Accept": "text/csv, */*"}
    )
    content = bytearray()
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            _draw_bar(title, 0, total)
            while chunk := response.read(_CHUNK):
                content += chunk
                _draw_bar(title, len(content), total)
                if len(content) > _MAX_BYTES:
                    break
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answered {error.code} {error.reason}"
        if error.code >= 500 or error.code == 429:
            raise _TransientError(answer) from None
        raise FetchError(f"{address}: {answer}") from None
    except urllib.error.URLError as error:
        raise _TransientError(f"no connection: {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(f"the connection broke: {error or type(error).__name__}") from None
    if title is not None:
        sys.stderr.write("\n")
    if len(content) > _MAX_BYTES:
        raise FetchError(f"{address}: the file is larger than {_MAX_BYTES} bytes and was not kept")
    if total is not None and len(content) != total:
        raise _TransientError(f"the file came in short, {len(content)} of {total} bytes")
    return bytes(content)


def _draw_bar(title: str | None, received: int, total: int | None) -> None:
    """Progress on standard error; the count is in kB where the total is not known."""
    if title is None:
        return
    if total:
        done = min(_BAR_WIDTH, _BAR_WIDTH * received // total)
        bar = "#" * done + "." * (_BAR_WIDTH - done)
        sys.stderr.write(f"\r{title} [{bar}] {100 * received // total:3d} %")
    else:
        sys.stderr.write(f"\r{title} {received / 1000:.0f} kB")
    sys.stderr.flush()
