"""A session on a TLS listener without SASL: the client is whom its certificate names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.serving.dispatch import Session
from ottla.runtime.connections.connection import Connection
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.runtime.connections.outbox import Piece
from ottla.security.distinguished_names import (
    InvalidCertificate,
    MappingRules,
    NoRuleMatches,
    subject_of,
)
from ottla.security.principal import Principal

if TYPE_CHECKING:
    from ottla.broker.login.logins import Logins


class CertificateSession:
    """The first request of a client, when the handshake is over and its certificate is known."""

    def __init__(
        self, logins: "Logins", connection: Connection, session: Session, rules: MappingRules
    ) -> None:
        self._logins = logins
        self._connection = connection
        self._session = session
        self._rules = rules

    def receive(self, frame: memoryview) -> Sequence[Piece] | None:
        """Learn who the client is, and leave the rest to the session behind this one."""
        certificate = self._connection.peer_certificate
        if certificate is not None:
            try:
                name = self._rules.name_of(subject_of(certificate))
            except (InvalidCertificate, NoRuleMatches) as error:
                self._logins.failed(self._connection, str(error))
                raise ConnectionEnded(str(error)) from error
            self._session.context.principal = Principal("User", name)
            self._session.context.login = "certificate"
            self._logins.succeeded(self._session.context)
        self._connection.use_session(self._session)
        return self._session.receive(frame)

    def close(self) -> None:
        """Take note that the connection is closed."""
        self._session.close()
