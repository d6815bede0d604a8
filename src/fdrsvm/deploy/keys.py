"""Certificates and node keys of a federation: elliptic curve P-384, valid for a year.

The authority's own key is never written: it has signed all that there is to sign.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fdrsvm.errors import FDRSVMError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError as error:  # it comes with Flower
    raise FDRSVMError(f"{error.name} is missing: pip install 'fdr-svm[flower]'") from None

VALID_DAYS = 365
_CLOCKS_MAY_DIFFER = timedelta(hours=1)


class Authority:
    """Signs the certificates of one federation."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.key = key
        self.certificate = certificate

    @classmethod
    def new(cls, name: str) -> Authority:
        """An authority of its own, trusted by nobody but this federation."""
        key = ec.generate_private_key(ec.SECP384R1())
        builder = _builder(name, name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, False)
        return cls(key, builder.sign(key, hashes.SHA384()))

    def issue(self, name: str, hosts: Sequence[str]) -> tuple[bytes, bytes]:
        """Certificate and private key, as PEM, of a server that is reached at these addresses."""
        key = ec.generate_private_key(ec.SECP384R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        builder = _builder(name, str(issuer), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), True)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False
        )
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(authority, False)
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        certificate = builder.add_extension(names, False).sign(self.key, hashes.SHA384())
        return certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key)

    @property
    def certificate_pem(self) -> bytes:
        """What everybody gets."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def node_key() -> tuple[bytes, bytes]:
    """Private and public key of a node, in OpenSSH's formats, as Flower reads them."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private, public + b"\n"


def write_private(path: Path, data: bytes) -> None:
    """A file that only its owner can read, from the first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _builder(
    name: str, issuer: str, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_common_name(name))
        .issuer_name(_common_name(issuer))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_MAY_DIFFER)
        .not_valid_after(now + timedelta(days=VALID_DAYS))
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
