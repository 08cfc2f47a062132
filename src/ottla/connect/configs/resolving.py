"""Configurations with the values of their variables, none of which is shown from then on."""

from collections.abc import Mapping

from ottla.connect.configs.keys import Kind
from ottla.connect.configs.providers import ConfigProviders
from ottla.connect.configs.secrets import Secrets
from ottla.connect.configs.shared_keys import CONNECTOR_CLASS
from ottla.connect.plugins import Plugins


class Resolver:
    """Looks up the variables of configurations."""

    def __init__(self, plugins: Plugins, providers: ConfigProviders, secrets: Secrets) -> None:
        self._plugins = plugins
        self._providers = providers
        self._secrets = secrets

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration with the values of its variables. Raises ConnectError."""
        resolved = self._providers.resolve(config)
        plugin = self._plugins.find_connector(resolved.get(CONNECTOR_CLASS, ""))
        for key in () if plugin is None else plugin.keys:
            if key.kind is Kind.PASSWORD:
                self._secrets.add(resolved.get(key.name, ""))
        return resolved
