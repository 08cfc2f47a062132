"""The logins of a node: which listeners ask for one, how sessions begin, and what is counted and logged."""

import logging
from typing import Any, Final

from ottla.broker.authorization.audit import Audit
from ottla.broker.login.certificate_session import CertificateSession
from ottla.broker.login.guesses import Guesses
from ottla.broker.login.login_session import LoginSession
from ottla.broker.login.mechanisms import Mechanism, MechanismRefused, make_mechanisms
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.dispatch import Session
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.runtime.connections.connection import Connection
from ottla.runtime.log_lines import RepeatedLines
from ottla.security.delegation_tokens import TokenKeys
from ottla.security.distinguished_names import InvalidRules, MappingRules
from ottla.security.sasl.oauthbearer import Validate
from ottla.world.world import World

_UNFINISHED_MIN: Final = 100
"""How many may be logging in at once, at least. Otherwise a tenth of all connections."""
_DISGUISE_BYTES: Final = 32


class Logins:
    """How clients of this node say who they are."""

    def __init__(
        self, configs: EffectiveConfigs, world: World, metadata: PublishedMetadata, audit: Audit
    ) -> None:
        """Raises `MechanismRefused` if a listener cannot ask for a login as configured."""
        self._metadata = metadata
        self._audit = audit
        self._run = world.workers.run
        self.scheduler = world.scheduler
        self.clock = world.clock
        self.random = world.random
        self.disguise_key = world.random.randbytes(_DISGUISE_BYTES)
        secret = configs.node.delegation_token_secret_key
        self.token_keys = None if secret is None else TokenKeys(secret.secret)
        self.delay_ms = configs.node.connection_failed_authentication_delay_ms
        self.frame_bytes_max = configs.node.sasl_server_max_receive_size
        self._guesses = Guesses()
        self._lines = RepeatedLines(logging.getLogger("ottla.login"), world.clock.monotonic_ms)
        self._mechanisms: dict[str, dict[str, Mechanism]] = {}
        self._rules: dict[str, MappingRules] = {}
        # A dict for its order: the oldest comes first.
        self._unfinished: dict[LoginSession, None] = {}
        self._unfinished_max = max(_UNFINISHED_MIN, world.connections_max // 10)
        for endpoint in configs.node.listener_endpoints:
            config = ListenerConfig(configs, endpoint.listener)
            if endpoint.security_protocol.startswith("SASL"):
                self._mechanisms[endpoint.listener] = make_mechanisms(config, self)
            elif endpoint.security_protocol == "SSL":
                self._rules[endpoint.listener] = _rules_of(config)

    @property
    def image(self) -> MetadataImage:
        """The metadata, with credentials and tokens."""
        return self._metadata.image

    def jwt_validator(self, config: ListenerConfig, mechanism: str) -> Validate:
        """Return what checks signed tokens."""
        # Imported only here: few listeners take tokens.
        from ottla.broker.login.jwt import JwtValidator

        return JwtValidator(config, mechanism, self.clock, self._run)

    def begin(self, connection: Connection, session: Session) -> Any:
        """Return what serves a new connection: its session, or what has to come before it."""
        name = connection.listener_name
        mechanisms = self._mechanisms.get(name)
        if mechanisms is not None:
            return LoginSession(self, connection, session, mechanisms)
        rules = self._rules.get(name)
        return session if rules is None else CertificateSession(self, connection, session, rules)

    # What sessions tell

    def begun(self, login: LoginSession) -> None:
        """Take note of a login. If too many are under way, the oldest one ends."""
        self._unfinished[login] = None
        if len(self._unfinished) > self._unfinished_max:
            next(iter(self._unfinished)).give_way()

    def ended(self, login: LoginSession) -> None:
        """Take note that a login is over, or its connection is."""
        self._unfinished.pop(login, None)

    def succeeded(self, context: RequestContext) -> None:
        """Take note of a login."""
        self._audit.logged_in(context)

    def find_wait_ms(self, connection: Connection, user: str, *, is_right: bool) -> int | None:
        """Return for how long to hold the outcome of a login back; None if there is to be no answer."""
        host, now_ms = connection.peer_host, self.clock.monotonic_ms()
        wait_ms = self._guesses.find_wait_ms(host, user, now_ms)
        if wait_ms is not None and not is_right:
            self._guesses.was_wrong(host, user, now_ms)
        return wait_ms

    def failed(self, connection: Connection, reason: str, *, is_guess: bool = False) -> None:
        """Take note of a failed login. `is_guess` says that it was found out to be wrong, and is answered."""
        self._audit.login_failed(connection.peer_host, connection.listener_name, reason, is_guess=is_guess)
        self._lines.warn(
            "a login failed", f"{connection.peer_host} on listener {connection.listener_name}: {reason}"
        )


def _rules_of(config: ListenerConfig) -> MappingRules:
    try:
        return MappingRules(config.value("ssl.principal.mapping.rules"))
    except InvalidRules as error:
        raise MechanismRefused(
            f"ssl.principal.mapping.rules of listener {config.listener}: {error}"
        ) from error
