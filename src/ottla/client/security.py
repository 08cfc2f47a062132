"""TLS and SASL: from settings to what a connection needs. PLAIN and SCRAM (RFC 5802)."""

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Awaitable, Callable

from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import AuthenticationFailed
from ottla.client.properties import CommonSettings, InvalidProperty
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

_ITERATIONS_MIN = 4096
# The server chooses the iterations. A hostile one could keep us busy for hours.
_ITERATIONS_MAX = 1_000_000

_UNREADABLE = "the broker sent an invalid SCRAM message: do not trust it"

Exchange = Callable[[bytes], Awaitable[bytes]]


def cluster_for(
    settings: CommonSettings, *, allow_auto_topic_creation: bool = False, retry_timeout_ms: int = 60_000
) -> Cluster:
    """Return a cluster, not started yet, that connects as the settings say."""
    uses_tls = settings.security_protocol in ("SSL", "SASL_SSL")
    uses_sasl = settings.security_protocol.startswith("SASL_")
    return Cluster(
        settings.bootstrap_servers,
        client_id=settings.client_id,
        request_timeout_s=settings.request_timeout_ms / 1000,
        setup_timeout_s=settings.socket_connection_setup_timeout_ms / 1000,
        retry_timeout_s=retry_timeout_ms / 1000,
        tls=tls_context(settings) if uses_tls else None,
        authenticate=(lambda connection: authenticate(connection, settings)) if uses_sasl else None,
        allow_auto_topic_creation=allow_auto_topic_creation,
    )


def tls_context(settings: CommonSettings) -> ssl.SSLContext:
    """Return a context that checks the broker's certificate, and its name unless that was switched off."""
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_location or None)
    except OSError as error:
        raise InvalidProperty(_unreadable("ssl.ca.location", settings.ssl_ca_location, error)) from error
    # What an SSL library takes for a default differs between systems.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    if settings.ssl_certificate_location:
        try:
            context.load_cert_chain(settings.ssl_certificate_location, settings.ssl_key_location or None)
        except OSError as error:
            names = "ssl.certificate.location and ssl.key.location"
            raise InvalidProperty(_unreadable(names, settings.ssl_certificate_location, error)) from error
    return context


def _unreadable(name: str, path: str, error: OSError) -> str:
    # What is wrong with the content is an SSLError, which is an OSError as well.
    reason = "it does not contain matching PEM data" if isinstance(error, ssl.SSLError) else error.strerror
    return f"{name}: {path} cannot be used, {reason}"


async def authenticate(connection: BrokerConnection, settings: CommonSettings) -> None:
    """Prove who we are on a fresh connection."""
    mechanism = settings.sasl_mechanism
    handshake = await connection.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    if handshake.error_code is not ErrorCode.NONE:
        raise AuthenticationFailed(
            f"the broker at {connection.address} does not support {mechanism}: use one of "
            f"{', '.join(handshake.mechanisms)}"
        )

    async def exchange(token: bytes) -> bytes:
        answer = await connection.ask(SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code is not ErrorCode.NONE:
            raise AuthenticationFailed(
                f"{connection.address} refused user {settings.sasl_username!r}: {answer.error_message}"
            )
        content: bytes = answer.auth_bytes
        return content

    if mechanism == "PLAIN":
        await exchange(b"\0" + settings.sasl_username.encode() + b"\0" + settings.sasl_password.encode())
    else:
        await scram(exchange, mechanism, settings.sasl_username, settings.sasl_password)


async def scram(
    exchange: Exchange, mechanism: str, username: str, password: str, nonce: str | None = None
) -> None:
    """Run SCRAM: both sides prove that they know the password, and neither says it."""
    digest = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
    nonce = nonce or secrets.token_urlsafe(24)
    name = username.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = _text(await exchange(f"n,,{client_first}".encode()))
    server_nonce, salt, iterations = _challenge(server_first)
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise AuthenticationFailed("the broker sent a wrong SCRAM nonce: do not trust it")
    if not _ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise AuthenticationFailed(
            f"the broker asks for {iterations} SCRAM iterations, which is out of range: do not trust it"
        )
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_final = f"c=biws,r={server_nonce}"
    signed = f"{client_first},{server_first},{client_final}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = await exchange(f"{client_final},p={base64.b64encode(proof).decode()}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    given = _decoded(_fields(_text(server_final)).get("v", ""))
    if not hmac.compare_digest(expected, given):
        raise AuthenticationFailed("the broker could not prove that it knows the password: do not trust it")


def _fields(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _challenge(server_first: str) -> tuple[str, bytes, int]:
    """Return the nonce, the salt and the iterations that a server asks for."""
    fields = _fields(server_first)
    iterations = fields.get("i", "")
    if not iterations.isdecimal() or len(iterations) > len(str(_ITERATIONS_MAX)):
        raise AuthenticationFailed(_UNREADABLE)
    return fields.get("r", ""), _decoded(fields.get("s", "")), int(iterations)


def _text(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError as error:
        raise AuthenticationFailed(_UNREADABLE) from error


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise AuthenticationFailed(_UNREADABLE) from error
