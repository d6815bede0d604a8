"""Flower's commands with the flags and variables they need here: offline, TLS, keys required.

The server is a process that becomes a SuperLink; another one tells it the plants' keys.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from fdrsvm.core.files import write_atomically
from fdrsvm.deploy.layout import CONNECTION, ClientFolder, ServerFolder, toml_value
from fdrsvm.deploy.processes import Started, wait_until
from fdrsvm.errors import FDRSVMError, InvalidInputError

_BIN = Path(sys.executable).parent
_COMMAND_SECONDS = _START_SECONDS = 120.0
_NODES = "nodes.json"
_UNREGISTERED = "unregistered"
# Flower takes a node's signature up to 5 s before its time and 305 s after it; a second is the
# precision of what a server tells of its clock.
_AHEAD, _BEHIND = 4.0, 304.0
_HALF_A_SECOND = 0.5  # by which a time in whole seconds is behind, on average
_NOT_VALID_NOW = (9, 10)  # OpenSSL's codes: not yet, not any more
_OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
}


def environment(flower_home: Path) -> dict[str, str]:
    """Variables for Flower's processes: no look outside, files in a folder of ours."""
    variables = {**os.environ, **_OFFLINE, "FLWR_HOME": str(flower_home)}
    variables["PATH"] = f"{_BIN}{os.pathsep}{variables.get('PATH', '')}"
    # Clients of one machine must not fight for its cores, and sums keep their order.
    variables.setdefault("OMP_NUM_THREADS", "1")
    return variables


def superlink_command(server: ServerFolder) -> list[str]:
    """A SuperLink with TLS that lets in registered nodes only, or one whose nodes are simulated."""
    safety = (
        ("--insecure", "--simulation")
        if server.is_simulated
        else (
            *("--ssl-ca-certfile", str(server.path / "ca.crt")),
            *("--ssl-certfile", str(server.path / "server.pem")),
            *("--ssl-keyfile", str(server.path / "server.key")),
            *("--database", str(server.flower_home / "state.db")),
            "--enable-supernode-auth",
        )
    )
    where = ("--host", server.host, "--port", str(server.port))
    return [_own("flower-superlink"), *where, *safety, "--disable-runtime-dependency-installation"]


def supernode_arguments(client: ClientFolder) -> list[str]:
    """Of a SuperNode that checks the server's certificate and shows its own key."""
    return [
        *("--superlink", client.server, "--port", str(client.runtime_port)),
        *("--root-certificates", str(client.path / "ca.crt")),
        *("--auth-supernode-private-key", str(client.path / "node.key")),
        *("--ssl-ca-certfile", str(client.path / "ca.crt")),
        *("--ssl-certfile", str(client.path / "inside.pem")),
        *("--ssl-keyfile", str(client.path / "inside.key")),
        *("--node-config", _pairs(client.node_config)),
    ]


def is_healthy(server: ServerFolder, timeout: float = 2.0) -> bool:
    """Whether the server answers, with the certificate of this federation if it has one."""
    # This machine is asked directly, whatever proxy is set for others.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if not server.is_simulated:
        context = ssl.create_default_context(cafile=str(server.path / "ca.crt"))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    scheme = "http" if server.is_simulated else "https"
    url = f"{scheme}://127.0.0.1:{server.port}/health"
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=timeout) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for_server(server: ServerFolder, process: Started, log: Path | None = None) -> None:
    """Until the server answers, or an error if its process ends or the time is up."""
    where = "" if log is None else f"; see {log}"
    if not wait_until(lambda: is_healthy(server) or not process.is_alive, _START_SECONDS):
        raise FDRSVMError(f"the server did not answer within {_START_SECONDS:g} s{where}")
    if not process.is_alive:
        raise FDRSVMError(f"the server ended before it answered{where}")


def run_server(server: ServerFolder, *, open_control: bool = False) -> None:
    """Become a SuperLink, so that whoever ends this process ends the server and nothing is left.

    Flower's control interface shares the port, so that a server that can be reached from outside
    must be asked for with ``open_control``.
    """
    if server.host != "127.0.0.1" and not open_control:
        raise InvalidInputError(
            "--open-control",
            f"must be given to listen on {server.host}: whoever reaches port {server.port} can run "
            "any code as this user",
            "it is not; docs/federation.md says how to close the port to others",
        )
    command, variables = superlink_command(server), environment(server.flower_home)
    sys.stdout.flush()
    register_aside(server)
    os.execve(command[0], command, variables)  # noqa: S606 - our own interpreter's folder


def register_aside(server: ServerFolder) -> None:
    """In a grandchild, which nobody has to wait for, and which ends with the server."""
    superlink = Started.of("server", os.getpid())  # it stays the same as another program
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    try:
        register_and_report(server, superlink)
    finally:
        os._exit(0)


def register_and_report(server: ServerFolder, superlink: Started) -> None:
    """Register the plants' keys; whatever goes wrong is in the server's log, its only reader."""
    try:
        wait_for_server(server, superlink)
        new = register_nodes(server)
        if new:
            os.write(1, f"fdrsvm: may connect from now on: {', '.join(new)}\n".encode())
    except Exception as error:
        reason = str(error) if isinstance(error, FDRSVMError) else repr(error)
        text = f"fdrsvm: plants whose keys are not known cannot connect: {reason}\n"
        os.write(2, text.encode())


def check_server(client: ClientFolder, timeout: float = 5.0) -> str | None:
    """None if a plant can reach its server; a line about it if it does not answer yet.

    Raises
    ------
    FDRSVMError
        If there is a server with another certificate, or with another time (Flower lets in no
        node whose clock differs): waiting would not help.
    """
    host, _, port = client.server.rpartition(":")
    host = host.strip("[]")
    try:
        context = ssl.create_default_context(cafile=str(client.path / "ca.crt"))
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = error.strerror if is_missing else "it is not a certificate"
        raise FDRSVMError(
            f"{client.path / 'ca.crt'} cannot be read ({reason}); "
            "ask the server's operator for this federation's ca.crt"
        ) from None
    try:
        ahead = seconds_ahead(host, int(port), context, timeout)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _NOT_VALID_NOW:
            now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
            raise FDRSVMError(
                f"{client.client_id}: the certificate of the server at {client.server} is not "
                f"valid at {now}, this machine's time ({error.verify_message}); set the clock of "
                "this machine, or ask the server's operator for a new federation"
            ) from None
        raise FDRSVMError(
            f"{client.client_id}: the server at {client.server} is not the one that ca.crt is for "
            f"({error.verify_message}); ask its operator for this federation's ca.crt"
        ) from None
    except (OSError, ValueError) as error:
        return f"the server at {client.server} does not answer yet ({error}); waiting for it"
    if ahead is not None and not -_BEHIND < ahead < _AHEAD:
        side = "ahead of" if ahead > 0.0 else "behind"
        raise FDRSVMError(
            f"{client.client_id}: this machine's clock is {abs(ahead):.0f} s {side} that of the "
            f"server at {client.server}, which lets in no node that is more than {_AHEAD:g} s "
            f"ahead or {_BEHIND:g} s behind; set the clock, as with NTP, and start again"
        )
    return None


def seconds_ahead(host: str, port: int, context: ssl.SSLContext, timeout: float) -> float | None:
    """By how much this clock is ahead of a server's, to one second; None if it is not told."""
    link = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    with contextlib.closing(link):
        link.connect()  # apart: an error of the certificate is a ValueError too
        try:
            link.request("GET", "/health")
            date = link.getresponse().getheader("Date", "")
            now = datetime.now(UTC)
            return (now - parsedate_to_datetime(date)).total_seconds() - _HALF_A_SECOND
        except (http.client.HTTPException, TypeError, ValueError):
            return None


def flwr(server: ServerFolder, *arguments: str) -> dict[str, Any]:
    """One call of the `flwr` command; its answer."""
    command = [_own("flwr"), *arguments, "--format", "json"]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter's folder
            command,
            env=environment(server.flower_home),
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
            start_new_session=True,  # Ctrl-C is for us: we know what to end
        )
    except subprocess.TimeoutExpired:
        raise FDRSVMError(f"flwr {arguments[0]}: no answer within {_COMMAND_SECONDS:g} s") from None
    answer = last_json(done.stdout)
    if done.returncode or not answer.get("success", True):
        reason = str(answer.get("error-message") or done.stderr or done.stdout).strip()
        last_line = reason.splitlines()[-1].strip() if reason else "it failed and gave no reason"
        raise FDRSVMError(f"flwr {' '.join(arguments[:2])}: {last_line}")
    return answer


def register_nodes(server: ServerFolder) -> list[str]:
    """Let in the nodes whose public keys stand in the server's folder, and no others.

    A key that was taken out of the folder, or replaced, is not let in any more, nor is a node that
    somebody else registered. Returns the names of new ones.

    Raises
    ------
    FDRSVMError
        With the names of keys that the server did not take; all others are registered by then.
    """
    keys = {path.stem: path for path in sorted((server.path / "nodes").glob("*.pub"))}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in keys.items()}
    listed, known = _node_list(server), _known_nodes(server)
    known = {name: entry for name, entry in known.items() if entry["node"] in listed}
    for name in [name for name in known if digests.get(name) != known[name]["sha256"]]:
        node = known.pop(name)["node"]
        flwr(server, "supernode", "unregister", node, CONNECTION)
        _keep_known(server, known)
        listed.pop(node)
    ours = {entry["node"] for entry in known.values()}
    for node in [n for n, status in listed.items() if status != _UNREGISTERED and n not in ours]:
        flwr(server, "supernode", "unregister", node, CONNECTION)
    new, refused = [], []
    for name in sorted(set(keys) - set(known)):
        path = str(keys[name])
        try:
            answer = flwr(server, "supernode", "register", path, CONNECTION, "--name", name)
        except FDRSVMError as error:
            refused.append(f"{name}.pub ({error})")
            continue
        known[name] = {"node": str(answer["node-id"]), "sha256": digests[name]}
        _keep_known(server, known)
        new.append(name)
    if refused:
        raise FDRSVMError(
            f"not registered: {'; '.join(refused)}. Flower takes a key only once: make a new one, "
            f"or end the server and remove {server.flower_home / 'state.db'}"
        )
    return new


def node_status(server: ServerFolder) -> dict[str, str]:
    """By name: "online", "offline" or "registered"."""
    listed = _node_list(server)
    names = {entry["node"]: name for name, entry in _known_nodes(server).items()}
    return {names.get(node, node): status for node, status in listed.items()}


def _node_list(server: ServerFolder) -> dict[str, str]:
    """Status by Flower's number of the node."""
    nodes = flwr(server, "supernode", "list", CONNECTION).get("nodes", [])
    return {str(node["node-id"]): str(node["status"]) for node in nodes}


def _known_nodes(server: ServerFolder) -> dict[str, dict[str, str]]:
    """By name: Flower's number of the node and its key's SHA-256. Flower's list has no names."""
    try:
        return dict(json.loads((server.flower_home / _NODES).read_text()))
    except (FileNotFoundError, ValueError):
        return {}


def _keep_known(server: ServerFolder, known: Mapping[str, Mapping[str, str]]) -> None:
    text = json.dumps(known, indent=2, sort_keys=True)
    write_atomically(server.flower_home / _NODES, text.encode() + b"\n")


def start_run(
    server: ServerFolder, config: Mapping[str, Any], simulated: Mapping[str, Any] | None = None
) -> str:
    """Hand a run to the server; Flower's number of it. ``simulated`` is the simulation's form."""
    arguments = ["run", str(server.app), CONNECTION, "--run-config", _pairs(config)]
    if simulated:
        arguments += ["--federation-config", _pairs(simulated)]
    return str(flwr(server, *arguments)["run-id"])


def run_status(server: ServerFolder, run_id: str) -> str:
    """Of a run, in Flower's words: "running", "finished:completed", ..."""
    answer = flwr(server, "list", CONNECTION, "--run-id", run_id)
    runs = answer.get("runs", [])
    return str(runs[0].get("status", "unknown")) if runs else "unknown"


def stop_run(server: ServerFolder, run_id: str) -> None:
    """End a run."""
    flwr(server, "stop", run_id, CONNECTION)


def _pairs(values: Mapping[str, Any]) -> str:
    """As Flower's options take settings."""
    return " ".join(f"{key}={toml_value(value)}" for key, value in values.items())


def _own(command: str) -> str:
    path = _BIN / command
    if not path.exists():
        raise FDRSVMError(f"{command} is missing: pip install 'fdr-svm[flower]'")
    return str(path)


def last_json(text: str) -> dict[str, Any]:
    """The JSON object that a command ends its output with."""
    for start in [k for k, letter in enumerate(text) if letter == "{"]:
        try:
            answer = json.loads(text[start:])
        except ValueError:
            continue
        if isinstance(answer, dict):
            return answer
    return {}
