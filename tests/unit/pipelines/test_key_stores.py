"""Stores of certificates as Java has them: PEM and PKCS12 are read, JKS is refused by name."""

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from ottla.pipelines.key_stores import context_of_stores, without_stores
from ottla.pipelines.properties import InvalidOption, common_properties

BASE = {"bootstrap.servers": "h:1", "security.protocol": "SSL"}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def _context(**more: str) -> ssl.SSLContext:
    named = {f"ssl.{name.replace('_', '.')}": value for name, value in more.items()}
    context = context_of_stores({**BASE, **named})
    assert context is not None
    return context


def _trusted(context: ssl.SSLContext) -> int:
    return len(context.get_ca_certs())


def test_pem_is_read_from_a_file_or_a_text_whatever_the_type_says(authority: trustme.CA, ca: Path) -> None:
    assert _trusted(_context(truststore_type="PEM", truststore_location=str(ca))) == 1
    assert _trusted(_context(truststore_location=str(ca))) == 1
    # Java takes JKS for granted, so people write it where it is not.
    assert _trusted(_context(truststore_type="JKS", truststore_location=str(ca))) == 1
    text = authority.cert_pem.bytes().decode()
    context = _context(truststore_type="PEM", truststore_certificates=text)
    assert _trusted(context) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_the_name_of_the_host_is_not_checked_if_that_is_said(ca: Path) -> None:
    assert not _context(
        truststore_location=str(ca), **{"endpoint.identification.algorithm": ""}
    ).check_hostname


def test_pkcs12_is_read_with_its_password(authority: trustme.CA, tmp_path: Path) -> None:
    issued = authority.issue_cert("client@example.org")
    path = tmp_path / "store.p12"
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"client",
            load_pem_private_key(issued.private_key_pem.bytes(), None),  # type: ignore[arg-type]
            load_pem_x509_certificate(issued.cert_chain_pems[0].bytes()),
            [load_pem_x509_certificate(authority.cert_pem.bytes())],
            BestAvailableEncryption(b"secret"),
        )
    )
    for kind in ({"truststore_type": "PKCS12", "keystore_type": "PKCS12"}, {}):
        context = _context(
            truststore_location=str(path),
            truststore_password="secret",
            keystore_location=str(path),
            keystore_password="secret",
            **kind,
        )
        assert _trusted(context) >= 1
    with pytest.raises(InvalidOption, match="its password is wrong"):
        _context(truststore_location=str(path), truststore_password="other")


def test_what_cannot_be_read_is_refused_by_name(ca: Path, tmp_path: Path) -> None:
    jks = tmp_path / "trust.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    with pytest.raises(InvalidOption, match=r"is a Java keystore \(JKS\).*keytool"):
        _context(truststore_location=str(jks))
    with pytest.raises(InvalidOption, match=r"ssl.truststore.location: .* cannot be read"):
        _context(truststore_location=str(tmp_path / "nothing"))
    with pytest.raises(InvalidOption, match="'BCFKS' cannot be read: use PEM or PKCS12"):
        _context(truststore_type="BCFKS", truststore_location=str(ca))
    with pytest.raises(InvalidOption, match="does not go with the stores of Java"):
        _context(truststore_location=str(ca), certificate_location="/x.pem")


def test_without_tls_or_stores_the_client_makes_its_own(ca: Path) -> None:
    plain = {**BASE, "security.protocol": "PLAINTEXT", "ssl.truststore.location": str(ca)}
    assert context_of_stores(plain) is None
    assert context_of_stores({**BASE, "ssl.ca.location": str(ca)}) is None
    assert without_stores(plain) == {"bootstrap.servers": "h:1", "security.protocol": "PLAINTEXT"}
    assert common_properties(plain) == plain
