"""TLS and SASL: from settings to what a connection needs."""

import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import AuthenticationFailed
from ottla.client.properties import CommonSettings, InvalidProperty
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from ottla.wire.sasl.login import Login

MakeLogin = Callable[[], Awaitable["Login"]]


def cluster_for(
    settings: CommonSettings,
    *,
    allow_auto_topic_creation: bool = False,
    retry_timeout_ms: int = 60_000,
    max_age_s: float = float("inf"),
    tls: ssl.SSLContext | None = None,
) -> Cluster:
    """Return a cluster, not started yet, that connects as the settings say. A context that is given wins."""
    uses_tls = settings.security_protocol in ("SSL", "SASL_SSL")
    make_login = _login_maker(settings) if settings.security_protocol.startswith("SASL_") else None
    return Cluster(
        settings.bootstrap_servers,
        client_id=settings.client_id,
        request_timeout_s=settings.request_timeout_ms / 1000,
        setup_timeout_s=settings.socket_connection_setup_timeout_ms / 1000,
        retry_timeout_s=retry_timeout_ms / 1000,
        retry_backoff_s=(settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000),
        max_age_s=max_age_s,
        tls=(tls or tls_context(settings)) if uses_tls else None,
        authenticate=None
        if make_login is None
        else lambda connection: authenticate(connection, settings, make_login),
        allow_auto_topic_creation=allow_auto_topic_creation,
    )


def tls_context(settings: CommonSettings) -> ssl.SSLContext:
    """Return a context that checks the broker's certificate, and its name unless that was switched off."""
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_location or None)
    except OSError as error:
        raise InvalidProperty(_unreadable("ssl.ca.location", settings.ssl_ca_location, error)) from error
    # What an SSL library takes for a default differs between systems. A trust store is a list of trusted
    # certificates, as in Java: a root need not be among them.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
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


def _login_maker(settings: CommonSettings) -> MakeLogin:
    """Return what begins a login. It is imported only here, because few clients log in."""
    mechanism, user, password = settings.sasl_mechanism, settings.sasl_username, settings.sasl_password
    if mechanism == "OAUTHBEARER":
        from ottla.client.bearer_tokens import bearer_login_maker

        return bearer_login_maker(settings)

    async def make() -> "Login":
        from secrets import token_urlsafe

        from ottla.wire.sasl.login import PlainLogin, ScramLogin

        if mechanism == "PLAIN":
            return PlainLogin(user, password)
        return ScramLogin(mechanism, user, password, token_urlsafe(24), is_token=settings.sasl_tokenauth)

    return make


async def authenticate(connection: BrokerConnection, settings: CommonSettings, make_login: MakeLogin) -> None:
    """Prove who we are on a fresh connection."""
    from ottla.wire.sasl.login import UntrustedServer

    mechanism = settings.sasl_mechanism
    who = "the token" if mechanism == "OAUTHBEARER" else f"user {settings.sasl_username!r}"
    login = await make_login()
    handshake = await connection.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    if handshake.error_code is not ErrorCode.NONE:
        raise AuthenticationFailed(
            f"the broker at {connection.address} does not support {mechanism}: use one of "
            f"{', '.join(handshake.mechanisms)}"
        )
    token: bytes | None = login.first()
    while token is not None:
        answer = await connection.ask(SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code is not ErrorCode.NONE:
            raise AuthenticationFailed(f"{connection.address} refused {who}: {answer.error_message}")
        try:
            token = login.receive(answer.auth_bytes)
        except UntrustedServer as error:
            raise AuthenticationFailed(f"the login at {connection.address} failed: {error}") from error
    connection.is_logged_in_for(answer.session_lifetime_ms)
