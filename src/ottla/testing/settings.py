"""Settings of nodes for tests: what a node that people run only warns of is an error in a test."""

from collections.abc import Mapping
from typing import Any, Final

_HERE: Final = "command line: "
"""Where such settings mostly come from."""


def find_mistake(settings: Mapping[Any, Any]) -> str | None:
    """Say what is wrong with settings of a node, or return None."""
    from ottla.metadata.configs.errors import UnusableConfigs
    from ottla.metadata.configs.load import load_node_config

    for name, value in settings.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f"{name!r} is {value!r}: names and values of settings are text"
    try:
        loaded = load_node_config(b"", dict(settings))
    except UnusableConfigs as error:
        return str(error).removeprefix(_HERE)
    # Of a config that the node knows there may be warnings, too: that it has no effect, say.
    return next((text.removeprefix(_HERE) for text in loaded.warnings if "unknown" in text), None)
