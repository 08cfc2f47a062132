"""The certificates of listeners: read at the start, and again when a file or a dynamic config changes.

A certificate that replaces another one must be for the same subject and at least the same names, unless
`ssl.allow.dn.changes` or `ssl.allow.san.changes` say otherwise. One that cannot be used changes nothing:
the listener keeps the one it has. Connections that are open keep theirs.

Deviation: Kafka reads a file again only when a config changes. Here a file that was replaced is noticed.
"""

import logging
from collections.abc import Iterable
from ssl import SSLContext
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.node import Endpoint
from ottla.runtime.connections.tls import TlsListening
from ottla.runtime.connections.tls_contexts import (
    KeyStore,
    OwnCertificate,
    TlsRefused,
    TlsSettings,
    check_key_file,
    find_file_version,
    own_certificate,
    renew_client_context,
    server_context,
)
from ottla.world.network import Listening
from ottla.world.scheduler import Scheduler

_logger: Final = logging.getLogger("ottla.tls")


class _Loaded(NamedTuple):
    """What a listener uses, and what it was made from."""

    settings: TlsSettings
    files: tuple[Any, ...]
    certificate: OwnCertificate


class _Outgoing(NamedTuple):
    """What connections to a listener of other nodes use, and what it was made from."""

    listener: str
    protocol: str
    context: SSLContext
    settings: TlsSettings
    files: tuple[Any, ...]


class TlsListeners:
    """The listeners of a node that are encrypted, and its connections to those of others."""

    def __init__(self, configs: EffectiveConfigs, endpoints: Iterable[Endpoint]) -> None:
        """Read all certificates. Raises `TlsRefused`."""
        self._loaded: dict[str, _Loaded] = {}
        self._contexts: dict[str, Any] = {}
        self._listening: dict[str, TlsListening] = {}
        self._outgoing: list[_Outgoing] = []
        for endpoint in endpoints:
            if not endpoint.security_protocol.endswith("SSL"):
                continue
            settings = tls_settings(ListenerConfig(configs, endpoint.listener), endpoint.security_protocol)
            try:
                _check_key_file(settings, configs)
                self._contexts[endpoint.listener] = server_context(settings)
                self._loaded[endpoint.listener] = _describe(settings)
            except TlsRefused as error:
                raise TlsRefused(f"listener {endpoint.listener}: {error}") from error

    def __bool__(self) -> bool:
        return bool(self._loaded)

    def wrap(self, listener: str, listening: Listening, scheduler: Scheduler) -> Listening:
        """Encrypt the connections of a listener, if it is one that is encrypted."""
        context = self._contexts.get(listener)
        if context is None:
            return listening
        wrapped = self._listening[listener] = TlsListening(listening, context, scheduler)
        return wrapped

    def renews(self, configs: EffectiveConfigs, listener: str, context: SSLContext) -> None:
        """Keep what connections to a listener of other nodes use up to date as well."""
        protocol = configs.node.security_protocols[listener]
        settings = tls_settings(ListenerConfig(configs, listener), protocol)
        self._outgoing.append(_Outgoing(listener, protocol, context, settings, _files(settings)))

    def find_fault(self, configs: EffectiveConfigs) -> str | None:
        """Return why new configs could not be used; None if they could."""
        for listener, loaded in self._loaded.items():
            try:
                self._make(listener, loaded, configs)
            except TlsRefused as error:
                return f"listener {listener}: {error}"
        return None

    def reload(self, configs: EffectiveConfigs) -> None:
        """Use what the configs and the files say now, wherever that is something new."""
        self._outgoing = [_renewed(one, configs) for one in self._outgoing]
        for listener, loaded in list(self._loaded.items()):
            try:
                made = self._make(listener, loaded, configs)
            except TlsRefused as error:
                _logger.warning("listener %s keeps its certificate: %s", listener, error)
                # It is looked at again when the file changes once more.
                self._loaded[listener] = loaded._replace(files=_files(loaded.settings))
                continue
            if made is not None:
                context, self._loaded[listener] = made
                self._contexts[listener] = context
                if listener in self._listening:
                    self._listening[listener].context = context
                _logger.info("listener %s uses a new certificate or truststore", listener)

    def _make(self, listener: str, loaded: _Loaded, configs: EffectiveConfigs) -> tuple[Any, _Loaded] | None:
        """Return what is new for a listener; None if nothing is."""
        config = ListenerConfig(configs, listener)
        protocol = "SASL_SSL" if loaded.settings.is_below_sasl else "SSL"
        settings = tls_settings(config, protocol)
        if settings == loaded.settings and _files(settings) == loaded.files:
            return None
        _check_key_file(settings, configs)
        context = server_context(settings)
        new = _describe(settings)
        old = loaded.certificate
        if new.certificate.subject != old.subject and not config.value("ssl.allow.dn.changes"):
            raise TlsRefused(
                f"the new certificate is for {new.certificate.subject}, not for {old.subject}: set "
                "ssl.allow.dn.changes if that is intended"
            )
        missing = old.names - new.certificate.names
        if missing and not config.value("ssl.allow.san.changes"):
            raise TlsRefused(
                f"the new certificate is not for {', '.join(sorted(missing))}: set ssl.allow.san.changes if "
                "that is intended"
            )
        return context, new


def _renewed(outgoing: _Outgoing, configs: EffectiveConfigs) -> _Outgoing:
    settings = tls_settings(ListenerConfig(configs, outgoing.listener), outgoing.protocol)
    files = _files(settings)
    if settings == outgoing.settings and files == outgoing.files:
        return outgoing
    try:
        renew_client_context(outgoing.context, settings)
    except TlsRefused as error:
        _logger.warning("connections to %s of others keep their certificate: %s", outgoing.listener, error)
    return outgoing._replace(settings=settings, files=files)


def tls_settings(config: ListenerConfig, protocol: str) -> TlsSettings:
    """Return what a listener is encrypted with, as its configs say."""
    is_below_sasl = protocol == "SASL_SSL"
    client_auth = config.value("ssl.client.auth")
    if is_below_sasl:
        # As in Kafka, the config of all listeners does not count where clients log in by SASL.
        client_auth = config.own_value("ssl.client.auth") or "none"
    return TlsSettings(
        keystore=KeyStore(
            config.value("ssl.keystore.type"),
            config.value("ssl.keystore.location"),
            config.secret("ssl.keystore.password"),
            config.secret("ssl.key.password"),
            config.secret("ssl.keystore.key"),
            config.secret("ssl.keystore.certificate.chain"),
        ),
        truststore=KeyStore(
            config.value("ssl.truststore.type"),
            config.value("ssl.truststore.location"),
            config.secret("ssl.truststore.password"),
            certificates=config.secret("ssl.truststore.certificates"),
        ),
        client_auth=client_auth,
        protocols=tuple(config.value("ssl.enabled.protocols")),
        ciphers=tuple(config.value("ssl.cipher.suites") or ()),
        is_below_sasl=is_below_sasl,
    )


def _describe(settings: TlsSettings) -> _Loaded:
    return _Loaded(settings, _files(settings), own_certificate(settings.keystore))


def _files(settings: TlsSettings) -> tuple[Any, ...]:
    stores = (settings.keystore, settings.truststore)
    return tuple(find_file_version(store.location) for store in stores if store.location)


def _check_key_file(settings: TlsSettings, configs: EffectiveConfigs) -> None:
    path = settings.keystore.location
    if path is None:
        return
    warning = check_key_file(path, is_strict=configs.node.ottla_key_files_check == "refuse")
    if warning is not None:
        _logger.warning("%s", warning)
