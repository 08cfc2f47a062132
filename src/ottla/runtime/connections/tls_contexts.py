"""Certificates and keys, read from files or texts in Kafka's forms, made into contexts for TLS.

PEM needs nothing beside the standard library. PKCS12 is read with `cryptography`, which the extra
`ottla[security]` brings. Java's own format, JKS, is refused with a sentence, since no well-kept library reads
it. Neither a key nor a password appears in an error.
"""

import os
import ssl
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from ottla.security.distinguished_names import subject_of
from ottla.security.refused import SecurityRefused

_JKS_MAGIC: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!eNULL"
"""For TLS 1.2: with forward secrecy only."""


class TlsRefused(SecurityRefused):
    """TLS cannot be used as configured. The message says which config is wrong."""


class KeyStore(NamedTuple):
    """A private key with its certificates, or certificates that are trusted."""

    type: str
    location: str | None
    password: str | None
    key_password: str | None = None
    key: str | None = None
    certificates: str | None = None

    @property
    def is_set(self) -> bool:
        """Say whether there is one."""
        return bool(self.location or self.key or self.certificates)


class TlsSettings(NamedTuple):
    """What a listener, or a connection to another node, is encrypted with."""

    keystore: KeyStore
    truststore: KeyStore
    client_auth: str = "none"
    protocols: Sequence[str] = ("TLSv1.2", "TLSv1.3")
    ciphers: Sequence[str] = ()
    is_below_sasl: bool = False


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return what a listener is encrypted with. Raises `TlsRefused`."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings)
    if not settings.keystore.is_set:
        raise TlsRefused("a TLS listener needs a certificate: set ssl.keystore.location")
    context.verify_mode = _CLIENT_AUTH[settings.client_auth.lower()]
    if context.verify_mode is not ssl.CERT_NONE and not settings.truststore.is_set:
        raise TlsRefused(
            f"ssl.client.auth is {settings.client_auth}, but ssl.truststore.location is not set: every "
            "certificate of a public authority would be accepted"
        )
    return context


def client_context(settings: TlsSettings, *, checks_host_name: bool) -> ssl.SSLContext:
    """Return what a connection to another node is encrypted with. Raises `TlsRefused`."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = checks_host_name
    if not settings.truststore.is_set:
        context.load_default_certs()
    return context


def renew_client_context(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Let new connections to other nodes use what the settings say now. Raises `TlsRefused`.

    Authorities that were trusted stay trusted until the node is restarted.
    """
    # What cannot be used must not be left half loaded.
    client_context(settings, checks_host_name=context.check_hostname)
    if settings.keystore.is_set:
        _load_key(context, settings.keystore)
    if settings.truststore.is_set:
        _load_trusted(context, settings.truststore)


def _context(protocol: int, settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_COMPRESSION
    versions = [_VERSIONS[name] for name in settings.protocols if name in _VERSIONS]
    if len(versions) != len(settings.protocols) or not versions:
        raise TlsRefused(
            f"ssl.enabled.protocols is {','.join(settings.protocols)}: only TLSv1.2 and TLSv1.3 are supported"
        )
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # As in Java, each certificate of a trust store is trusted as it is. Otherwise OpenSSL
    # wants a root, and takes the first of several self-signed ones that have the same name.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _set_ciphers(context, settings.ciphers)
    if settings.keystore.is_set:
        _load_key(context, settings.keystore)
    if settings.truststore.is_set:
        _load_trusted(context, settings.truststore)
    return context


def _set_ciphers(context: ssl.SSLContext, names: Sequence[str]) -> None:
    try:
        context.set_ciphers(":".join(_openssl_name(name) for name in names) if names else _CIPHERS)
    except ssl.SSLError as error:
        if not all(name.startswith(("TLS_AES", "TLS_CHACHA")) for name in names):
            raise TlsRefused(f"ssl.cipher.suites has no cipher that is known: {','.join(names)}") from error


def _openssl_name(name: str) -> str:
    """Return OpenSSL's name of a cipher of TLS 1.2, from the standard's."""
    if "_WITH_" not in name:
        return name
    keys, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    parts = cipher.replace("AES_", "AES").replace("_POLY1305", "-POLY1305").replace("_", "-")
    keys = "" if keys == "RSA" else keys.replace("_", "-") + "-"
    return keys + parts.removesuffix("-SHA256") if "CHACHA20" in parts else keys + parts


def _load_key(context: ssl.SSLContext, store: KeyStore) -> None:
    what = store.location or "ssl.keystore.key"
    if store.type.upper() == "PEM":
        password = store.key_password
        content = _pem_of_key(store)
    else:
        password = None
        content = _pem_of_pkcs12(store)
    with _as_file(content) as path:
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(path, password=password or "")
        except (ssl.SSLError, ValueError) as error:
            raise TlsRefused(
                f"{what} cannot be used: it needs a private key with its certificate, and the right "
                "ssl.key.password"
            ) from error


def _load_trusted(context: ssl.SSLContext, store: KeyStore) -> None:
    what = store.location or "ssl.truststore.certificates"
    if store.type.upper() == "PEM":
        content = store.certificates or _read(store, "ssl.truststore.location").decode("latin-1")
    else:
        content = _pem_of_pkcs12(store).decode()
    try:
        context.load_verify_locations(cadata=_certificates_in(content))
    except (ssl.SSLError, ValueError) as error:
        raise TlsRefused(f"{what} cannot be used: it has no certificate in PEM form") from error


def _pem_of_key(store: KeyStore) -> bytes:
    if store.location:
        return _read(store, "ssl.keystore.location")
    if not store.key or not store.certificates:
        raise TlsRefused("ssl.keystore.key and ssl.keystore.certificate.chain have to be set together")
    return f"{store.key}\n{store.certificates}\n".encode()


def _pem_of_pkcs12(store: KeyStore) -> bytes:
    """Return what is in a PKCS12 file, as PEM."""
    data = _read(store, "ssl.keystore.location")
    if data.startswith(_JKS_MAGIC):
        raise TlsRefused(
            f"{store.location} is a Java keystore (JKS), which Ottla cannot read: convert it with `keytool "
            "-importkeystore -deststoretype pkcs12`, or use PEM files"
        )
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError as error:
        raise TlsRefused(
            f"{store.location} is not PEM: install `ottla[security]` to read PKCS12, or set the type to PEM"
        ) from error
    password = None if store.password is None else store.password.encode()
    try:
        content = pkcs12.load_pkcs12(data, password)
    except ValueError as error:
        raise TlsRefused(
            f"{store.location} cannot be used: it is not PKCS12, or its password is wrong"
        ) from error
    parts: list[bytes] = []
    if content.key is not None:
        parts.append(content.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificates = [content.cert, *content.additional_certs]
    parts += [one.certificate.public_bytes(Encoding.PEM) for one in certificates if one is not None]
    return b"".join(parts)


def _read(store: KeyStore, name: str) -> bytes:
    assert store.location is not None, "a store that is read is a file"
    try:
        with open(store.location, "rb") as file:  # noqa: PTH123 - the world of a process
            return file.read()
    except OSError as error:
        raise TlsRefused(f"{name} {store.location} cannot be read: {error.strerror}") from error


def find_file_version(path: str) -> tuple[int, int, int] | None:
    """Return what changes when a file does; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def check_key_file(path: str, is_strict: bool) -> str | None:
    """Return a warning about a file of private keys that others have access to, or None.

    Raises `TlsRefused` if all users of this machine can change the file, and if it is strict, for any access.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        # That it cannot be read is said where it is read.
        return None
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    can = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
    fault = f"{path} holds a private key, but other users can {can} it: run `chmod 600 {path}`"
    if is_strict or mode & stat.S_IWOTH:
        raise TlsRefused(fault)
    return fault


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give a path that OpenSSL can read, without writing a key to a disk."""
    descriptor = os.memfd_create("ottla")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _certificates_in(text: str) -> str:
    """Return the certificates of a text, without keys and remarks."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found: list[str] = []
    rest = text
    while begin in rest:
        body, _, rest = rest.partition(begin)[2].partition(end)
        found.append(f"{begin}{body}{end}")
    if not found:
        raise ValueError("no certificate")
    return "\n".join(found)


class OwnCertificate(NamedTuple):
    """Whose certificate a store has: what may not change while a node runs."""

    subject: str
    names: frozenset[str]


def own_certificate(store: KeyStore) -> OwnCertificate:
    """Return the names in the first certificate of a keystore. Raises `TlsRefused`."""
    content = _pem_of_key(store) if store.type.upper() == "PEM" else _pem_of_pkcs12(store)
    try:
        first = _certificates_in(content.decode("latin-1")).split("-----END CERTIFICATE-----")[0]
        with _as_file((first + "-----END CERTIFICATE-----\n").encode()) as path:
            # The only decoder of certificates in the standard library.
            decoded = ssl._ssl._test_decode_cert(path)  # type: ignore[attr-defined]
        der = ssl.PEM_cert_to_DER_cert(first + "-----END CERTIFICATE-----\n")
    except (ssl.SSLError, ValueError) as error:
        raise TlsRefused(f"{store.location or 'ssl.keystore.key'} has no certificate in PEM form") from error
    names = frozenset(f"{kind}:{value}" for kind, value in decoded.get("subjectAltName", ()))
    return OwnCertificate(subject_of(der), names)
