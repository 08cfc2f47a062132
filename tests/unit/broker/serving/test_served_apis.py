"""The table of served APIs says what is true of the handlers, and of Kafka's messages."""

import subprocess
import sys
from inspect import signature
from pathlib import Path
from pkgutil import walk_packages

import pytest

from ottla.broker import apis
from ottla.broker.serving import served_rows
from ottla.broker.serving.collected import collect
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import declared_of, find_handler
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.wire.apis import ApiKey, api_of

KINDS = {"broker": Listener.BROKER, "controller": Listener.CONTROLLER}


def test_every_handler_is_in_the_table_and_nothing_else_is() -> None:
    handlers = [
        module.name for module in walk_packages(apis.__path__, f"{apis.__name__}.") if not module.ispkg
    ]
    assert {ApiKey[name.rpartition(".")[2].upper()] for name in handlers} == set(SERVED)


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name.lower())
def test_an_api_names_its_rights_or_why_it_needs_none(key: ApiKey) -> None:
    declared = declared_of(key)
    assert bool(declared.rights) != bool(declared.free_because)


@pytest.mark.parametrize(
    "key",
    [key for key, served in SERVED.items() if Listener.CONTROLLER in served.listeners],
    ids=lambda key: key.name.lower(),
)
def test_what_controllers_serve_needs_no_broker(key: ApiKey) -> None:
    handler = find_handler(key, Listener.CONTROLLER)
    assert handler is not None
    _, context = signature(handler).parameters.values()
    assert context.annotation is RequestContext


def test_the_table_says_what_the_handlers_declare() -> None:
    """ApiVersions reads it without importing a handler: `make reference` writes it."""
    assert served_rows.__file__ is not None
    assert Path(served_rows.__file__).read_text() == collect()


def test_the_table_is_read_without_importing_a_handler() -> None:
    look = (
        "import sys; from ottla.broker.serving.served_apis import SERVED;"
        "print(len(SERVED), [name for name in sys.modules if name.startswith('ottla.broker.apis.')])"
    )
    shown = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert shown.stdout.split(maxsplit=1) == [str(len(SERVED)), "[]\n"]


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name.lower())
def test_what_is_served_exists(key: ApiKey) -> None:
    served, api = SERVED[key], api_of(key)
    assert served.versions.first == api.versions.first
    assert served.versions.last <= api.versions.last
    assert served.listeners <= {KINDS[name] for name in api.listeners}
