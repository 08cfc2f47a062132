"""One registry for all tests of its answers."""

import uuid

import pytest
from tests.simulation.registry.world import SimulatedRegistry, Site


@pytest.fixture(scope="session")
def registry() -> SimulatedRegistry:
    """A registry. It is shared: use subjects of your own."""
    return Site().instance()


@pytest.fixture
def subject() -> str:
    """A subject that no other test uses."""
    return f"s-{uuid.uuid4().hex[:12]}"
