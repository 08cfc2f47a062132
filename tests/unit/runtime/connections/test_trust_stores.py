"""A trust store is a list of trusted certificates, as in Java: not only roots, and several of one name."""

import shutil
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.unit.runtime.connections.test_tls_contexts import handshake

from ottla.client.admin.settings import AdminSettings
from ottla.client.security import tls_context
from ottla.runtime.connections.tls_contexts import KeyStore, TlsSettings, client_context, server_context

NODE = trustme.CA()
NODE_CERTIFICATE = NODE.issue_cert("localhost")
PASSWORD = "changeit"


def self_signed(name: str) -> bytes:
    """Make a key with a certificate as `keytool -genkeypair` does: not that of an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    begin = datetime.now(UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=30))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + certificate.public_bytes(Encoding.PEM)


def listener(trusted: KeyStore) -> ssl.SSLContext:
    key = NODE_CERTIFICATE.private_key_and_cert_chain_pem.bytes().decode()
    own = KeyStore("PEM", None, None, key=key, certificates=key)
    return server_context(TlsSettings(own, trusted, "required"))


def client(pem: Path) -> ssl.SSLContext:
    context = ssl.create_default_context()
    NODE.configure_trust(context)
    context.load_cert_chain(pem)
    return context


def is_let_in(server: ssl.SSLContext, pem: Path) -> bool:
    try:
        return bool(handshake(server, client(pem)).getpeercert(binary_form=True))
    except ssl.SSLError:
        return False


def test_each_of_several_certificates_of_one_name_is_trusted(tmp_path: Path) -> None:
    pems = [tmp_path / f"{number}.pem" for number in range(4)]
    for pem in pems:
        pem.write_bytes(self_signed("client"))
    server = listener(KeyStore("PEM", None, None, certificates="".join(pem.read_text() for pem in pems[:3])))
    assert [is_let_in(server, pem) for pem in pems] == [True, True, True, False]


def test_an_authority_below_a_root_is_enough(tmp_path: Path) -> None:
    root = trustme.CA()
    below, beside = root.create_child_ca(), root.create_child_ca()
    trusted = below.cert_pem.bytes().decode()
    server = listener(KeyStore("PEM", None, None, certificates=trusted))
    for number, (authority, expected) in enumerate(((below, True), (beside, False), (root, False))):
        pem = tmp_path / f"{number}.pem"
        pem.write_bytes(authority.issue_cert("ann@example.org").private_key_and_cert_chain_pem.bytes())
        assert is_let_in(server, pem) is expected


def test_clients_and_nodes_trust_a_node_by_the_authority_below_a_root(tmp_path: Path) -> None:
    root = trustme.CA()
    below = root.create_child_ca()
    below.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = below.issue_cert("localhost").private_key_and_cert_chain_pem.bytes().decode()
    server = server_context(
        TlsSettings(KeyStore("PEM", None, None, key=issued, certificates=issued), KeyStore("PEM", None, None))
    )
    settings = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL"}
    ours = tls_context(AdminSettings.of({**settings, "ssl.ca.location": str(tmp_path / "ca.pem")}))
    assert handshake(server, ours).version() == "TLSv1.3"
    trusted = KeyStore("PEM", str(tmp_path / "ca.pem"), None)
    of_nodes = client_context(TlsSettings(KeyStore("PEM", None, None), trusted), checks_host_name=True)
    assert handshake(server, of_nodes).version() == "TLSv1.3"


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def by_openssl(root: Path) -> tuple[list[Path], KeyStore]:
    """Return the keys of two clients of one name, and a store that trusts both."""
    pems = []
    for name in ("a", "b"):
        pem = root / f"{name}.pem"
        words = ("-newkey", "rsa:2048", "-nodes", "-subj", "/O=x/CN=client", "-days", "30")
        run("openssl", "req", "-x509", *words, "-keyout", str(pem), "-out", str(root / f"{name}.crt"))
        with pem.open("a") as file:
            file.write((root / f"{name}.crt").read_text())
        pems.append(pem)
    (root / "both.pem").write_text("".join((root / f"{name}.crt").read_text() for name in ("a", "b")))
    return pems, KeyStore("PEM", str(root / "both.pem"), None)


def by_keytool(root: Path) -> tuple[list[Path], KeyStore]:
    trust = ("-keystore", str(root / "trust.p12"), "-storetype", "PKCS12", "-storepass", PASSWORD)
    pems = []
    for name in ("a", "b"):
        pem = root / f"{name}.pem"
        own = ("-keystore", str(root / f"{name}.p12"), "-storetype", "PKCS12", "-storepass", PASSWORD)
        run("keytool", "-genkeypair", "-alias", "k", "-keyalg", "RSA", "-dname", "CN=client,O=x", *own)
        crt = str(root / f"{name}.crt")
        run("keytool", "-exportcert", "-rfc", "-alias", "k", *own, "-file", crt)
        run("keytool", "-importcert", "-noprompt", "-alias", name, *trust, "-file", crt)
        words = ("-in", str(root / f"{name}.p12"), "-passin", f"pass:{PASSWORD}", "-nodes")
        run("openssl", "pkcs12", *words, "-out", str(pem))
        pems.append(pem)
    return pems, KeyStore("PKCS12", str(root / "trust.p12"), PASSWORD)


@pytest.mark.thorough(guard="tests/unit/runtime/connections/test_trust_stores.py")
@pytest.mark.parametrize("make", [by_openssl, by_keytool])
def test_stores_of_real_tools(make: Callable[[Path], tuple[list[Path], KeyStore]], tmp_path: Path) -> None:
    if shutil.which(make.__name__.removeprefix("by_")) is None:
        pytest.skip("the tool is not installed")
    pems, trusted = make(tmp_path)
    stranger = tmp_path / "stranger.pem"
    stranger.write_bytes(self_signed("client"))
    server = listener(trusted)
    assert [is_let_in(server, pem) for pem in (*pems, stranger)] == [True, True, False]


def test_who_is_trusted_may_not_vouch_for_others(tmp_path: Path) -> None:
    """A certificate in the store that is not an authority's signs another one."""
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(self_signed("client"))
    signer = load_pem_private_key(trusted.read_bytes(), None)
    issuer = x509.load_pem_x509_certificate(trusted.read_bytes())
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    forged = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "admin")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(issuer.not_valid_after_utc)
        .sign(signer, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem = tmp_path / "forged.pem"
    pem.write_bytes(private + forged.public_bytes(Encoding.PEM) + issuer.public_bytes(Encoding.PEM))
    server = listener(KeyStore("PEM", str(trusted), None))
    assert [is_let_in(server, one) for one in (trusted, pem)] == [True, False]
