"""The table of served APIs says what is true of the handlers, and of Kafka's messages."""

from pkgutil import walk_packages

import pytest

from ottla.broker import apis
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
    served = SERVED[key]
    assert bool(served.rights) != bool(served.free_because)


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name.lower())
def test_what_is_served_exists(key: ApiKey) -> None:
    served, api = SERVED[key], api_of(key)
    assert served.versions.first == api.versions.first
    assert served.versions.last <= api.versions.last
    assert served.listeners <= {KINDS[name] for name in api.listeners}
