"""One node for all tests of pipelines without Spark."""

from collections.abc import Iterator

import pytest
from tests.simulation.pipelines.world import World


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """A node. It is shared: use names of your own."""
    world = World()
    yield world
    world.link.close()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    text: str = request.node.name
    return "".join(letter if letter.isalnum() else "-" for letter in text)[-60:].strip("-")
