"""The reference of all configs, written from their declarations: `make reference` puts it into the docs."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.declare import ConfigKey, ConfigValues, Required
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.quota import QuotaConfig
from ottla.metadata.configs.topic import TopicConfig
from ottla.metadata.configs.values import DOUBLE_MAX, INT_MAX, LONG_MAX

_INTRODUCTION: Final = """\
# Configs

Ottla knows every config of Apache Kafka 4.3, so it accepts any `server.properties` file of Kafka. `make
reference` writes this page from the declarations in `src/ottla/metadata/configs`.

- *Changes*: a **restart** config is read once, when the node starts. A **broker** config can be changed for
  one running broker, a **cluster** config for one broker or for all. Other configs take effect at once.
- *No effect yet* marks a config that Ottla accepts, stores and shows, but does not use.
- An *internal* config is for tests. DescribeConfigs lists it only if it is set.
"""

_BIGGEST: Final[Mapping[object, str]] = {INT_MAX: "2^31 - 1", LONG_MAX: "2^63 - 1", DOUBLE_MAX: "no limit"}
_CHANGES: Final = {
    "read-only": "restart",
    "per-broker": "broker",
    "cluster-wide": "cluster",
    "dynamic": "at once",
}


def render_reference() -> str:
    """Return the page, as Markdown."""
    return "\n".join((_INTRODUCTION, *_render_parts()))


def _render_parts() -> Iterator[str]:
    yield from _render("Topics", TopicConfig)
    yield from _render("Groups", GroupConfig)
    yield from _render("Client metrics", ClientMetricsConfig)
    yield from _render("Quotas", QuotaConfig)
    for declarations in NodeConfig.__bases__:
        assert issubclass(declarations, ConfigValues), "a node's configs are declared in groups"
        title = declarations.__name__.removesuffix("Configs")
        yield from _render(_spaced(title), declarations)


def _spaced(title: str) -> str:
    """Write `BrokerShareGroup` as `Broker: share group`."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in title).split()
    first, *rest = words
    return f"{first.capitalize()}: {' '.join(rest)}" if rest else f"{first.capitalize()}'s own"


def _render(title: str, declarations: type[ConfigValues]) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{declarations.__doc__}\n"
    yield "| config | type | default | allowed | changes | meaning |"
    yield "|---|---|---|---|---|---|"
    for key in sorted(declarations.keys.values(), key=lambda key: key.name):
        cells = (
            f"`{key.name}`",
            key.type.name.lower(),
            _default(key),
            _allowed(key),
            _CHANGES[key.update.value],
            _meaning(key),
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _default(key: ConfigKey[Any]) -> str:
    if isinstance(key.default, Required):
        return "(must be set)"
    if key.default is None:
        return "(unset)"
    if not isinstance(key.default, bool) and key.default in _BIGGEST:
        return _BIGGEST[key.default]
    text = key.format_default()
    return f"`{text}`" if text else "(empty)"


def _allowed(key: ConfigKey[Any]) -> str:
    return "" if key.rule is None else str(key.rule)


def _meaning(key: ConfigKey[Any]) -> str:
    notes = [key.doc]
    if key.broker_key:
        notes.append(f"Taken from the broker's `{key.broker_key}` if unset.")
    if key.internal:
        notes.append("*Internal.*")
    if key.inert:
        notes.append("*No effect yet.*")
    return " ".join(notes)


if __name__ == "__main__":
    print(render_reference(), end="")
