"""The test chain of root, intermediate and leaf, made as an owner would make it to sign releases.

For tests only: each test session makes new keys, which no one trusts. The leaf needs key usage
digitalSignature and extended key usage emailProtection; self-signed leaves are refused by C2PA.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

USAGES = {
    "emailProtection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "documentSigning": ObjectIdentifier("1.3.6.1.5.5.7.3.36"),
}


@dataclass(frozen=True)
class Chain:
    """PEM files: leaf and intermediate, the leaf's key, the root."""

    certificates: Path
    key: Path
    root: Path


def make_chain(folder: Path, usage: str | None = "emailProtection") -> Chain:
    """Return a fresh chain of P-256 keys."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("root", "intermediate", "leaf")}
    root = _certificate("root", keys["root"], "root", keys["root"], authority=True, usage=None)
    middle = _certificate(
        "intermediate", keys["intermediate"], "root", keys["root"], authority=True, usage=None
    )
    leaf = _certificate(
        "leaf", keys["leaf"], "intermediate", keys["intermediate"], authority=False, usage=usage
    )
    chain = Chain(folder / "leaf.pem", folder / "key.pem", folder / "root.pem")
    pem = serialization.Encoding.PEM
    chain.certificates.write_bytes(leaf.public_bytes(pem) + middle.public_bytes(pem))
    chain.root.write_bytes(root.public_bytes(pem))
    chain.key.write_bytes(
        keys["leaf"].private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return chain


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
    usage: str | None,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    key_usage = x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name.from_rfc4514_string(f"CN={subject},O=plantain tests"))
        .issuer_name(x509.Name.from_rfc4514_string(f"CN={issuer},O=plantain tests"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(key_usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if usage is None and not authority:  # also that of a server on this machine
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        builder = builder.add_extension(names, critical=False)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([USAGES[usage]]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())
