"""Certificates in the forms that Kafka knows: what is read, and what is refused without telling a secret."""

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from ottla.runtime.connections.tls_contexts import (
    KeyStore,
    TlsRefused,
    TlsSettings,
    _as_file,
    check_key_file,
    client_context,
    find_file_version,
    renew_client_context,
    server_context,
)

PASSWORD = "the password of the store"
NONE = KeyStore("PEM", None, None)
AUTHORITY = trustme.CA()
ISSUED = AUTHORITY.issue_cert("localhost")
CLIENT = AUTHORITY.issue_cert("ann@example.org")


def write_pkcs12(root: Path) -> tuple[str, str]:
    """Write a keystore and a truststore, and return their paths."""
    key = serialization.load_pem_private_key(ISSUED.private_key_pem.bytes(), None)
    own = x509.load_pem_x509_certificate(ISSUED.cert_chain_pems[0].bytes())
    ca = x509.load_pem_x509_certificate(AUTHORITY.cert_pem.bytes())
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    keystore, truststore = root / "keystore.p12", root / "truststore.p12"
    keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(b"node", key, own, [ca], encryption)  # type: ignore[arg-type]
    )
    trusted = [pkcs12.PKCS12Certificate(ca, b"ca")]
    truststore.write_bytes(pkcs12.serialize_java_truststore(trusted, encryption))
    return str(keystore), str(truststore)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Let both sides talk until they are done. Returns the server's."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    waiting = [theirs, ours]
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
    return ours


def test_a_pkcs12_keystore_and_truststore_are_used(tmp_path: Path) -> None:
    keystore, truststore = write_pkcs12(tmp_path)
    server = server_context(
        TlsSettings(
            KeyStore("PKCS12", keystore, PASSWORD), KeyStore("PKCS12", truststore, PASSWORD), "required"
        )
    )
    client = ssl.create_default_context()
    AUTHORITY.configure_trust(client)
    CLIENT.configure_cert(client)
    done = handshake(server, client)
    assert done.version() == "TLSv1.3"
    assert done.getpeercert()


def test_a_wrong_password_is_told_without_telling_it(tmp_path: Path) -> None:
    keystore, _ = write_pkcs12(tmp_path)
    with pytest.raises(TlsRefused, match=r"keystore\.p12") as caught:
        server_context(TlsSettings(KeyStore("PKCS12", keystore, "a wrong one"), NONE))
    assert "a wrong one" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x30\x82\x01\x00" + bytes(50)])
def test_a_store_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.p12"
    path.write_bytes(content)
    with pytest.raises(TlsRefused, match=r"store\.p12"):
        server_context(TlsSettings(KeyStore("PKCS12", str(path), PASSWORD), NONE))


def test_a_pem_key_with_a_password_is_used(tmp_path: Path) -> None:
    key = serialization.load_pem_private_key(ISSUED.private_key_pem.bytes(), None)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    path = tmp_path / "node.pem"
    path.write_bytes(pem + b"".join(blob.bytes() for blob in ISSUED.cert_chain_pems))
    client = ssl.create_default_context()
    AUTHORITY.configure_trust(client)
    settings = TlsSettings(KeyStore("PEM", str(path), None, key_password=PASSWORD), NONE)
    assert handshake(server_context(settings), client).version() == "TLSv1.3"
    with pytest.raises(TlsRefused) as caught:
        server_context(TlsSettings(KeyStore("PEM", str(path), None, key_password="a wrong one"), NONE))
    assert "a wrong one" not in str(caught.value)


def test_a_key_and_certificates_in_the_configuration_are_used() -> None:
    chain = "".join(blob.bytes().decode() for blob in ISSUED.cert_chain_pems)
    key = ISSUED.private_key_pem.bytes().decode()
    client = ssl.create_default_context()
    AUTHORITY.configure_trust(client)
    server = server_context(TlsSettings(KeyStore("PEM", None, None, key=key, certificates=chain), NONE))
    assert handshake(server, client).version() == "TLSv1.3"


def test_connections_to_other_nodes_show_a_new_certificate_from_then_on(tmp_path: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ISSUED.configure_cert(server)
    server.verify_mode = ssl.CERT_REQUIRED
    AUTHORITY.configure_trust(server)
    own, trusted = tmp_path / "node.pem", tmp_path / "ca.pem"
    own.write_bytes(CLIENT.private_key_and_cert_chain_pem.bytes())
    AUTHORITY.cert_pem.write_to_path(trusted)
    settings = TlsSettings(KeyStore("PEM", str(own), None), KeyStore("PEM", str(trusted), None))
    client = client_context(settings, checks_host_name=True)
    first = handshake(server, client).getpeercert(binary_form=True)
    own.write_bytes(AUTHORITY.issue_cert("bob@example.org").private_key_and_cert_chain_pem.bytes())
    renew_client_context(client, settings)
    second = handshake(server, client).getpeercert(binary_form=True)
    assert first != second
    own.write_text("garbage")
    with pytest.raises(TlsRefused):
        renew_client_context(client, settings)
    assert handshake(server, client).getpeercert(binary_form=True) == second, "it keeps what it has"


def test_connections_to_other_nodes_trust_a_new_authority_from_then_on(tmp_path: Path) -> None:
    other = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other.issue_cert("127.0.0.1", "localhost").configure_cert(server)
    trusted = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(trusted)
    settings = TlsSettings(NONE, KeyStore("PEM", str(trusted), None))
    client = client_context(settings, checks_host_name=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client)
    other.cert_pem.write_to_path(trusted, append=True)
    renew_client_context(client, settings)
    assert handshake(server, client).version() == "TLSv1.3"
    # Without stores of its own a node trusts what the system does, and has nothing to renew.
    renew_client_context(client, TlsSettings(NONE, NONE))


def test_a_store_that_is_missing_has_no_version_and_a_new_one_has_another(tmp_path: Path) -> None:
    path = tmp_path / "keystore.p12"
    assert find_file_version(str(path)) is None
    path.write_bytes(b"old")
    before = find_file_version(str(path))
    assert find_file_version(str(path)) == before
    path.write_bytes(b"newer")
    assert find_file_version(str(path)) not in (None, before)


@pytest.mark.parametrize(
    ("mode", "is_strict", "told"),
    [
        (0o600, True, None),
        (0o400, True, None),
        (0o640, False, "read"),
        (0o620, False, "change"),
        (0o604, False, "read"),
        (0o640, True, TlsRefused),
        (0o602, False, TlsRefused),
    ],
)
def test_a_key_that_others_have_access_to_is_told_or_refused(
    tmp_path: Path, mode: int, is_strict: bool, told: object
) -> None:
    path = tmp_path / "key.pem"
    path.touch()
    path.chmod(mode)
    if told is TlsRefused:
        with pytest.raises(TlsRefused, match="chmod 600"):
            check_key_file(str(path), is_strict)
        return
    warning = check_key_file(str(path), is_strict)
    assert warning is None if told is None else f"other users can {told} it" in (warning or "")
    assert check_key_file(str(tmp_path / "none"), is_strict=True) is None


def test_a_key_in_memory_is_gone_after_it_was_read() -> None:
    with _as_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"
    assert not Path(path).exists()
