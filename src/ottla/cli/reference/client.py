"""The reference of the client, written from its code: `make reference` puts it into the docs.

The properties come from their declarations, the methods from their signatures and docstrings.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, get_type_hints

from ottla import errors
from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.consumer import Consumer
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.producer import Producer
from ottla.client.producer.settings import ProducerSettings
from ottla.client.properties import CommonSettings, property_name
from ottla.client.share import ShareConsumer
from ottla.client.share.settings import ShareConsumerSettings

_INTRODUCTION: Final = """\
# The Python client

The client has four classes for asyncio: `Producer`, `Consumer`, `ShareConsumer` and `Admin`. `Admin` has an
attribute for each kind of thing, such as topics and groups. `from ottla import Producer` imports one of them;
`from ottla import sync` imports the same classes without asyncio. Properties can be given by Kafka's names
(`properties={"linger.ms": 5}`), as arguments (`linger_ms=5`), or in a `client.properties` file
(`properties="client.properties"`).
`make reference` writes this page from the code.
"""

SETTINGS: Final[dict[str, type[CommonSettings]]] = {
    "Producer": ProducerSettings,
    "Consumer": ConsumerSettings,
    "Share consumer": ShareConsumerSettings,
    "Admin": AdminSettings,
}


def render_reference() -> str:
    """Return the page, as Markdown."""
    return "\n".join((_INTRODUCTION, *_render_parts()))


def public_classes() -> Iterator[tuple[str, type[Any]]]:
    """Give the classes that users call, each with the name they reach it by."""
    yield "ottla.client.producer.Producer", Producer
    yield "ottla.client.consumer.Consumer", Consumer
    yield "ottla.client.share.ShareConsumer", ShareConsumer
    yield "ottla.client.admin.Admin", Admin
    admin = Admin("127.0.0.1:9092")
    for name, found in vars(Admin).items():
        if isinstance(found, cached_property) and not name.startswith("_"):
            yield f"admin.{name}", type(getattr(admin, name))


def _render_parts() -> Iterator[str]:
    for name, cls in public_classes():
        yield f"## `{name}`\n"
        yield f"{_first_paragraph(cls)}\n"
        for method, function in _methods(cls):
            kind = "async " if inspect.iscoroutinefunction(function) else ""
            yield f"**`{kind}{method}{_signature(function)}`**\n"
            yield f"{_first_paragraph(function)}\n"
    yield "## Errors\n"
    yield "`from ottla.errors import Fenced` imports one of them. A program may try again after those\n"
    yield "that say so.\n"
    yield "| error | is a | try again | meaning |"
    yield "|---|---|---|---|"
    for name in errors.__all__:
        error: type[Exception] = getattr(errors, name)
        again = "yes" if getattr(error, "retriable", False) is True else ""
        yield f"| `{name}` | `{error.__bases__[0].__name__}` | {again} | {_first_paragraph(error)} |"
    yield ""
    yield "## Properties of all four\n"
    common = {item.name for item in dataclasses.fields(CommonSettings)}
    yield from _properties(CommonSettings, common)
    for name, settings in SETTINGS.items():
        own = {item.name for item in dataclasses.fields(settings)} - common
        if own:
            yield f"## Properties of the {name.lower()}\n"
            yield from _properties(settings, own)


def _methods(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    for name, member in vars(cls).items():
        function = getattr(member, "__wrapped__", member)
        if inspect.isfunction(function) and not name.startswith("_"):
            yield name, function


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [item for item in signature.parameters.values() if item.name != "self"]
    text = str(signature.replace(parameters=parameters))
    # The modules that types come from mean nothing to callers of a method.
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text).replace("'", "")


def _properties(settings: type[CommonSettings], names: set[str]) -> Iterator[str]:
    hints = get_type_hints(settings)
    yield "| property | type | default | meaning |"
    yield "|---|---|---|---|"
    for item in sorted(dataclasses.fields(settings), key=property_name):
        if item.name in names:
            default = "(must be set)" if item.default is dataclasses.MISSING else f"`{item.default!r}`"
            hint = getattr(hints[item.name], "__name__", str(hints[item.name])).replace("|", "\\|")
            yield f"| `{property_name(item)}` | {hint} | {default} | {item.metadata['doc']} |"
    yield ""


def _first_paragraph(thing: Any) -> str:
    return re.split(r"\n\s*\n", inspect.getdoc(thing) or "")[0].replace("\n", " ")


if __name__ == "__main__":
    print(render_reference(), end="")
