"""A new federation: certificates, keys, settings and a README for the server and each plant.

Certificates and keys are of the elliptic curve P-384, valid for a year. The authority's own key is
never written: it has signed all that there is to sign.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fdrsvm.core.files import write_atomically
from fdrsvm.data.contract import read_contract
from fdrsvm.deploy.layout import ServerFolder, to_toml, write_app
from fdrsvm.deploy.settings import RunSettings, contract_config
from fdrsvm.errors import FDRSVMError, InvalidInputError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError as error:  # it comes with Flower
    raise FDRSVMError(f"{error.name} is missing: pip install 'fdr-svm[flower]'") from None

_VALID_DAYS = 365
_CLOCKS_MAY_DIFFER = timedelta(hours=1)
_PEM = serialization.Encoding.PEM
_NOT_LOCKED = serialization.NoEncryption()
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def init(
    folder: Path,
    plants: Mapping[str, Path | None],
    *,
    address: str = "127.0.0.1",
    port: int = 18000,
    contract: Path | None = None,
    label: str = "label",
) -> None:
    """Write the folders of a new federation.

    Parameters
    ----------
    folder : Path
        Must not exist, or be empty.
    plants : mapping from name to data file or None
        None leaves a place to fill in: the plant knows where its data are.
    address, port
        Where plants reach the server; the certificate is for this address and loopback.
    contract : Path, optional
        A data contract, copied to each plant and to the server. If it limits every feature, runs
        hold the plants' answers against its limits, see ``feature-limit``.
    label : str
        Name of the column with the labels.
    """
    if not plants:
        raise InvalidInputError("plants", "at least one must take part", "there is none")
    for name, data in plants.items():
        if not _NAME.fullmatch(name):
            raise InvalidInputError(
                "plants",
                "names must be letters, digits, '.', '_' and '-', at most 63",
                f"one is {name!r}",
            )
        if data is not None and not data.expanduser().is_file():
            raise InvalidInputError(f"data of {name!r}", "must be a file", f"{data} is not")
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInputError("folder", "must be new or empty", f"{folder} is not")
    if not 1 <= port <= 65_000:
        raise InvalidInputError("port", "must be from 1 to 65000", f"it is {port}")
    if not _ADDRESS.fullmatch(address):
        raise InvalidInputError(
            "address", "must be a host name in ASCII or an IPv4 address", f"it is {address!r}"
        )
    agreed = b""
    if contract is not None:
        read_contract(contract)  # an error before any key is written
        agreed = contract.expanduser().read_bytes()
    authority = Authority()
    server = folder / "server"
    (server / "nodes").mkdir(parents=True)
    listens = "127.0.0.1" if address in _LOOPBACK else "0.0.0.0"  # noqa: S104 - plants are outside
    write_server(
        ServerFolder(server.resolve(), listens, port, f"{address}:{port}"),
        authority,
        address,
        list(plants),
        agreed,
    )
    for number, (name, data) in enumerate(plants.items()):
        plant = folder / "plants" / name
        plant.mkdir(parents=True)
        authority.write_certificate(plant, "inside", f"{name} inside", _LOOPBACK)
        write_atomically(server / "nodes" / f"{name}.pub", write_node_key(plant))
        if agreed:
            write_atomically(plant / "contract.json", agreed)
        client = {
            "server": f"{address}:{port}",
            "runtime-port": port + 1 + number,
            "client-id": name,
            "data": "data.csv" if data is None else str(data.expanduser().resolve()),
            "label": label,
            "contract": "contract.json" if agreed else "",
            "state": "state",
        }
        write_atomically(plant / "client.toml", _CLIENT_HEAD.encode() + to_toml(client))
        readme = _PLANT_README.format(name=name, days=_VALID_DAYS, address=address, port=port)
        write_atomically(plant / "README.md", readme.encode())


def write_server(
    server: ServerFolder,
    authority: Authority,
    address: str,
    plants: Sequence[str],
    contract: bytes,
) -> None:
    """The server's folder, but for the plants' keys."""
    path = server.path
    hosts = list(dict.fromkeys([address, *_LOOPBACK]))
    authority.write_certificate(path, "server", "FDR-SVM server", hosts)
    settings = {"host": server.host, "port": server.port, "address": server.address}
    write_atomically(path / "server.toml", to_toml(settings))
    run = {"clients": ",".join(plants), "output": str(path / "runs" / "run")}
    if contract:
        write_atomically(path / "contract.json", contract)
        run.update(contract_config(path / "contract.json"))
    write_app(server.app, RunSettings.from_config(run).to_config())
    server.write_connection(
        address=f"127.0.0.1:{server.port}", root_certificates=str(path / "ca.crt")
    )
    flag = "" if address in _LOOPBACK else " --open-control"
    readme = _SERVER_README.format(days=_VALID_DAYS, flag=flag, address=address, port=server.port)
    write_atomically(path / "README.md", readme.encode())


class Authority:
    """Signs the certificates of one federation, and is trusted by nobody else."""

    name = "FDR-SVM federation"

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP384R1())
        public = self.key.public_key()
        builder = self._builder(self.name, public, is_authority=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        self.certificate = builder.add_extension(identifier, False).sign(self.key, hashes.SHA384())

    def write_certificate(self, folder: Path, stem: str, name: str, hosts: Sequence[str]) -> None:
        """Write a server's certificate and key, and the authority's own certificate.

        The server is reached at the addresses ``hosts``.
        """
        key = ec.generate_private_key(ec.SECP384R1())
        builder = self._builder(name, key.public_key(), is_authority=False)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        for extension in (usage, authority, x509.SubjectAlternativeName(names)):
            builder = builder.add_extension(extension, False)
        certificate = builder.sign(self.key, hashes.SHA384())
        write_atomically(folder / "ca.crt", self.certificate.public_bytes(_PEM))
        write_atomically(folder / f"{stem}.pem", certificate.public_bytes(_PEM))
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, _NOT_LOCKED)
        _write_private(folder / f"{stem}.key", private)

    def _builder(
        self, name: str, public_key: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        subject, issuer = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])
            for text in (name, self.name)
        )
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            encipher_only=False,
            decipher_only=False,
        )
        constraints = x509.BasicConstraints(is_authority, 0 if is_authority else None)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCKS_MAY_DIFFER)
            .not_valid_after(now + timedelta(days=_VALID_DAYS))
            .add_extension(constraints, True)
            .add_extension(usage, True)
        )


def write_node_key(folder: Path) -> bytes:
    """Write a node's keys in OpenSSH's formats, as Flower reads them; the public one."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(_PEM, serialization.PrivateFormat.OpenSSH, _NOT_LOCKED)
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    public = key.public_key().public_bytes(encoding, form) + b"\n"
    _write_private(folder / "node.key", private)
    write_atomically(folder / "node.pub", public)
    return public


def _write_private(path: Path, data: bytes) -> None:
    """A file that only its owner can read, from the first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


_CLIENT_HEAD = """\
# This plant's own settings; nothing here leaves the plant. Paths are relative to this folder.
# Further ones: clip = true (move values to the contract's limits), epsilon and kappa (in place of
# the run's), least-in-sum = 4 (answers leave only in masked sums over at least 4 plants).
"""

_PLANT_README = """\
# Plant {name}

This folder is for plant {name} alone: node.key and inside.key are secret. Whoever has node.key can
speak for the plant. The certificates last {days} days.

1. Install the release of fdr-svm that the server has: `pip install 'fdr-svm[flower]'`.
2. In client.toml, set `data` to the CSV (or Parquet) file: one column per feature, and the labels.
3. `fdrsvm client .` connects to {address}:{port} and stays; Ctrl-C ends it. Starting it again is
   always safe: it goes on where it was.

What leaves the plant: number of rows and columns, column names, the labels that occur, and in each
round models, risks and cuts (docs/federated.md). No row does. The plant runs only the code that is
installed here; what the server sends is data.

Rather than take a key from the server's side, make one here
(`ssh-keygen -t ecdsa -b 384 -N "" -f node.key`) and send node.key.pub, which goes into the server's
folder nodes/ as {name}.pub.
"""

_SERVER_README = """\
# Server

server.key is secret. The authority's own key was not kept: nobody can sign another certificate for
this federation. Its certificates last {days} days; after that, or for one more plant, `init` a new
one. Each folder in ../plants goes to its plant, over a safe channel, and is deleted here.

    fdrsvm server .{flag}                          # listens on port {port}; Ctrl-C ends it
    fdrsvm federation run . --output run-1   # in another terminal, once the plants are connected
    fdrsvm federation resume . --output run-1    # after a crash: goes on from the last checkpoint

Plants connect to {address}:{port}; that port must be open to them, and to nobody else: whoever
reaches it can run any code as the user who started the server (docs/federation.md). A plant with a
new key: replace its file in nodes/ and start the server again. A plant that leaves: take it out.
"""
