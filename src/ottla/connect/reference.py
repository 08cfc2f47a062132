"""The reference of connectors and of the REST API, written from the code by `make reference`."""

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.connect.catalog import all_plugins
from ottla.connect.configs.keys import Key, text_of
from ottla.connect.configs.shared_keys import SINK_KEYS, SOURCE_KEYS, common_keys
from ottla.connect.plugins import ConnectorPlugin, Plugin, PluginKind, Unsupported
from ottla.connect.serving.routes import ROUTES
from ottla.connect.settings import WorkerSettings

_INTRODUCTION: Final = """\
# Connectors

`ottla connect` runs connectors. It has the REST API of Kafka Connect 4.3, and keeps its state in the same
three topics. A class is named in full, by its last part, or by that without `Connector`. `make reference`
writes this page from the code.

"""
_KINDS: Final = (
    (PluginKind.CONVERTER, "Converters"),
    (PluginKind.HEADER_CONVERTER, "Header converters"),
    (PluginKind.TRANSFORMATION, "Transformations"),
    (PluginKind.PREDICATE, "Predicates"),
)


def render_reference() -> str:
    """Return the page, as Markdown."""
    return _INTRODUCTION + "".join(_sections())


def _sections() -> Iterator[str]:
    plugins = all_plugins()
    connectors = [plugin for plugin in plugins.all if isinstance(plugin, ConnectorPlugin)]
    for title, is_source in (("Sources", True), ("Sinks", False)):
        yield f"## {title}\n\n"
        for plugin in connectors:
            if plugin.is_source is is_source:
                yield from _connector(plugin)
    yield "## What all connectors have\n\n"
    yield from _table(common_keys(plugins, WorkerSettings().defaults))
    yield "\nSources also have:\n\n"
    yield from _table(SOURCE_KEYS)
    yield "\nSinks also have:\n\n"
    yield from _table(SINK_KEYS)
    for kind, title in _KINDS:
        yield f"\n## {title}\n\n"
        yield from _listing(plugin for plugin in plugins.all if plugin.kind is kind)
    yield "\n## The REST API\n\n| route | what it does | query parameters |\n|---|---|---|\n"
    for route in ROUTES:
        doc = (route.handler.__doc__ or "").strip().splitlines()[0]
        parameters = ", ".join(f"`{name}`" for name in route.parameters)
        yield f"| {route.method} `{route.path}` | {doc} | {parameters} |\n"


def _connector(plugin: ConnectorPlugin) -> Iterator[str]:
    yield f"### {plugin.alias or plugin.simple_name.removesuffix('Connector')}\n\n"
    yield f"`{plugin.class_name}`\n\n{plugin.doc} Delivery: {plugin.delivery}.\n\n"
    yield from _table(plugin.keys)
    if plugin.unsupported:
        yield "\nNot supported:\n\n"
        yield from (f"- {_option(name, item)}.\n" for name, item in plugin.unsupported.items())
    if plugin.needless:
        listed = ", ".join(f"`{name}`" for name in sorted(plugin.needless))
        yield f"\nTaken without effect: {listed}.\n"
    yield "\n"


def _option(name: str, item: Unsupported) -> str:
    shown = f"`{name}*`" if name.endswith(".") else f"`{name}`"
    if item.same:
        shown += f" other than {' or '.join(f'`{value}`' for value in item.same)}"
    return f"{shown}: {item.advice}"


def _table(keys: Iterable[Key]) -> Iterator[str]:
    yield "| key | type | default | what it is |\n|---|---|---|---|\n"
    for key in keys:
        default = "required" if key.is_required else text_of(key.default)
        yield f"| `{key.name}` | {key.kind.value.lower()} | {_shown(default)} | {_escaped(key.doc)} |\n"


def _shown(default: str | None) -> str:
    if default == "required":
        return default
    return f"`{default}`" if default else ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _listing(plugins: Iterable[Plugin]) -> Iterator[str]:
    yield "| class | keys |\n|---|---|\n"
    for plugin in plugins:
        keys = ", ".join(f"`{key.name}`" for key in plugin.keys)
        yield f"| `{plugin.class_name}` | {keys} |\n"


if __name__ == "__main__":
    print(render_reference(), end="")
