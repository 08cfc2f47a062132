"""The configs of one listener: its own, those of one of its SASL mechanisms, and those of all listeners.

From strong to weak: `listener.name.<listener>.<mechanism>.<config>`, `listener.name.<listener>.<config>` and
`<config>`, with the names of listeners and mechanisms in lower case.
"""

from collections.abc import Mapping
from typing import Any

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.values import Password


class ListenerConfig:
    """What holds for one listener."""

    def __init__(self, configs: EffectiveConfigs, listener: str) -> None:
        self.listener = listener
        self._texts: Mapping[str, str] = configs.layers.merged()
        self._prefix = f"listener.name.{listener.lower()}."

    def value(self, name: str, mechanism: str | None = None) -> Any:
        """Return the value of a config."""
        key = NodeConfig.keys[name]
        names = [self._prefix + name, name]
        if mechanism is not None:
            names.insert(0, f"{self._prefix}{mechanism.lower()}.{name}")
        for one in names:
            text = self._texts.get(one)
            if text is not None:
                return key.parse(text)
        return key.default

    def secret(self, name: str, mechanism: str | None = None) -> str | None:
        """Return a secret as text."""
        value = self.value(name, mechanism)
        return value.secret if isinstance(value, Password) else None

    def own_value(self, name: str, mechanism: str | None = None) -> Any:
        """Return the value that is set for this listener or mechanism; None if none is."""
        prefix = self._prefix if mechanism is None else f"{self._prefix}{mechanism.lower()}."
        text = self._texts.get(prefix + name)
        return None if text is None else NodeConfig.keys[name].parse(text)
