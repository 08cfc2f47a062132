"""The SASL mechanisms of a listener, made from its configs."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.image import MetadataImage, ScramKey
from ottla.security.delegation_tokens import TokenKeys
from ottla.security.jaas import InvalidJaas, JaasEntry, parse_jaas
from ottla.security.principal import parse_principal
from ottla.security.refused import SecurityRefused
from ottla.security.sasl.disguise import choose_models, disguise
from ottla.security.sasl.mechanism import Identity, SaslConversation
from ottla.security.sasl.oauthbearer import OAuthBearerConversation, Validate
from ottla.security.sasl.plain import PlainConversation
from ottla.security.sasl.scram import (
    MECHANISM_CODES,
    ScramAccount,
    ScramConversation,
    ScramCredential,
)
from ottla.security.sasl.unsecured_jwt import unsecured_validator
from ottla.wire.metadata_records.scram import UserScramCredentialRecord
from ottla.wire.sasl.login import SCRAM_HASHES
from ottla.world.clock import Clock
from ottla.world.randomness import Randomness

_logger: Final = logging.getLogger("ottla.login")
_JAAS: Final = "sasl.jaas.config"
_NONCE_BYTES: Final = 20
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_OAUTH: Final = "OAUTHBEARER"
_UNSIGNED: Final = "unsecuredValidator"
_DEFAULT_VALIDATOR: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_VALIDATORS: Final = (
    _DEFAULT_VALIDATOR,
    # The name that it had up to Kafka 3.
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)


class MechanismRefused(SecurityRefused):
    """A mechanism cannot be offered as configured. The message says which config to change."""


class Mechanism(NamedTuple):
    """A mechanism of a listener: how a login by it begins, and how long it holds."""

    name: str
    begin: Callable[[], SaslConversation]
    session_ms_max: int


class LoginWorld(Protocol):
    """What mechanisms look up when somebody logs in."""

    clock: Clock
    random: Randomness
    token_keys: TokenKeys | None
    disguise_key: bytes

    @property
    def image(self) -> MetadataImage:
        """The metadata, with credentials and tokens."""

    def jwt_validator(self, config: ListenerConfig, mechanism: str) -> Validate:
        """Return what checks signed tokens."""


def make_mechanisms(config: ListenerConfig, world: LoginWorld) -> dict[str, Mechanism]:
    """Return the mechanisms that are enabled on a listener. Raises `MechanismRefused`."""
    names = config.value("sasl.enabled.mechanisms")
    return {name: _make(name, config, world) for name in names}


def _make(name: str, config: ListenerConfig, world: LoginWorld) -> Mechanism:
    session_ms_max = config.own_value("connections.max.reauth.ms", name)
    if session_ms_max is None:
        session_ms_max = config.value("connections.max.reauth.ms")
    match name:
        case "PLAIN":
            return Mechanism(name, _plain(config), session_ms_max)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":
            return Mechanism(name, _scram(name, world), session_ms_max)
        case "OAUTHBEARER":
            return Mechanism(name, _oauthbearer(config, world), session_ms_max)
        case "GSSAPI":
            raise MechanismRefused(
                f"listener {config.listener} enables GSSAPI, but Ottla does not support Kerberos: set "
                f"listener.name.{config.listener.lower()}.sasl.enabled.mechanisms to SCRAM-SHA-512"
            )
    raise MechanismRefused(f"listener {config.listener} enables {name}, which is not a known SASL mechanism")


def jaas_of(config: ListenerConfig, mechanism: str) -> JaasEntry | None:
    """Return the login options of a mechanism; None if there are none."""
    text = config.secret(_JAAS, mechanism)
    if text is None:
        return None
    try:
        return parse_jaas(text)
    except InvalidJaas as error:
        raise MechanismRefused(
            f"listener.name.{config.listener.lower()}.{mechanism.lower()}.{_JAAS} cannot be read: {error}"
        ) from error


def _plain(config: ListenerConfig) -> Callable[[], SaslConversation]:
    jaas = jaas_of(config, "PLAIN")
    if config.value("sasl.server.callback.handler.class", "PLAIN") is not None:
        raise MechanismRefused(
            f"listener {config.listener} has a sasl.server.callback.handler.class for PLAIN, but Ottla "
            "cannot call Java classes: list the users in sasl.jaas.config"
        )
    users = {} if jaas is None or jaas.module != _PLAIN_MODULE else jaas.users
    return lambda: PlainConversation(users)


def _scram(mechanism: str, world: LoginWorld) -> Callable[[], SaslConversation]:
    def find_account(user: str, is_token: bool) -> ScramAccount | None:
        return _find_token(user, mechanism, world) if is_token else _find_user(user, mechanism, world)

    models = _Models(MECHANISM_CODES[mechanism])

    def seem(user: str, is_token: bool) -> ScramCredential:
        if is_token and world.token_keys is not None:
            return world.token_keys.disguise(user)
        return disguise(user, models.of(world.image), world.disguise_key)

    def begin() -> SaslConversation:
        nonce = world.random.randbytes(_NONCE_BYTES).hex()
        return ScramConversation(mechanism, find_account, nonce, seem)

    assert mechanism in SCRAM_HASHES, "other mechanisms are not SCRAM"
    return begin


class _Models:
    """Whose credentials the users borrow from that do not exist, chosen again whenever a user changes."""

    def __init__(self, mechanism: int) -> None:
        self._mechanism = mechanism
        self._scram: Mapping[ScramKey, UserScramCredentialRecord] = {}
        self._chosen: tuple[ScramCredential, ...] = ()

    def of(self, image: MetadataImage) -> tuple[ScramCredential, ...]:
        if image.scram is not self._scram:
            self._scram = image.scram
            self._chosen = choose_models(
                (key.user, _credential(record))
                for key, record in image.scram.items()
                if key.mechanism == self._mechanism
            )
        return self._chosen


def _credential(record: UserScramCredentialRecord) -> ScramCredential:
    return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)


def _find_user(user: str, mechanism: str, world: LoginWorld) -> ScramAccount | None:
    record = world.image.scram.get(ScramKey(MECHANISM_CODES[mechanism], user))
    if record is None:
        return None
    return ScramAccount(_credential(record), Identity(user))


def _find_token(token_id: str, mechanism: str, world: LoginWorld) -> ScramAccount | None:
    token = world.image.tokens.get(token_id)
    if token is None or world.token_keys is None:
        return None
    if min(token.max_timestamp, token.expiration_timestamp) < world.clock.now_ms():
        # The controller removes it now and then. Until that, it is no token any more.
        return None
    owner = parse_principal(token.owner)
    identity = Identity(owner.name, token.expiration_timestamp, is_by_token=True, principal_type=owner.type)
    return ScramAccount(world.token_keys.credential(token_id, mechanism), identity)


def _oauthbearer(config: ListenerConfig, world: LoginWorld) -> Callable[[], SaslConversation]:
    validate = _validator(config, world)
    return lambda: OAuthBearerConversation(validate)


def _validator(config: ListenerConfig, world: LoginWorld) -> Validate:
    handler: Any = config.value("sasl.server.callback.handler.class", _OAUTH)
    if handler is not None and handler not in _VALIDATORS:
        raise MechanismRefused(
            f"listener {config.listener} has the sasl.server.callback.handler.class {handler}, but Ottla "
            f"cannot call Java classes: use {_DEFAULT_VALIDATOR}"
        )
    if _checks_signatures(config):
        return world.jwt_validator(config, _OAUTH)
    if not takes_unsigned_tokens(config):
        raise MechanismRefused(
            f"listener {config.listener} enables OAUTHBEARER without sasl.oauthbearer.jwks.endpoint.url, so "
            "that anybody could make a token: set the URL, or an option such as "
            "unsecuredValidatorAllowableClockSkewMs in sasl.jaas.config if that is what you want"
        )
    _logger.warning(
        "listener %s takes tokens that nobody has signed: anybody who reaches it can be anybody. Set "
        "sasl.oauthbearer.jwks.endpoint.url",
        config.listener,
    )
    jaas = jaas_of(config, _OAUTH)
    return unsecured_validator({} if jaas is None else jaas.options, world.clock.now_ms)


def _checks_signatures(config: ListenerConfig) -> bool:
    handler = config.value("sasl.server.callback.handler.class", _OAUTH)
    return handler is not None or bool(config.value("sasl.oauthbearer.jwks.endpoint.url", _OAUTH))


def takes_unsigned_tokens(config: ListenerConfig) -> bool:
    """Say whether a listener takes tokens that anybody can write.

    Its login options have to ask for that, by an option of the validator. Those that begin with
    `unsecuredLogin` are for the tokens that this node makes for itself, and say nothing about others'.
    """
    if _OAUTH not in config.value("sasl.enabled.mechanisms") or _checks_signatures(config):
        return False
    jaas = jaas_of(config, _OAUTH)
    return jaas is not None and any(option.startswith(_UNSIGNED) for option in jaas.options)
