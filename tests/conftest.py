"""What holds for all tests."""

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from tests.suite import plugin
from tests.support.byte_code import keep_byte_code

keep_byte_code()

pytest_plugins = ("tests.java.plugin",)

# A shell makes what runs in the background ignore Ctrl-C, and what tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that is busy with something else must not make a test fail: nothing here is about time. And a
# change is judged by the same examples each time; `make search` looks for others, and for more of them.
SEARCHES = os.environ.get("EXAMPLES") == "new"
settings.register_profile(
    "ottla",
    deadline=None,
    derandomize=not SEARCHES,
    max_examples=200 if SEARCHES else 50,
    suppress_health_check=(HealthCheck.too_slow,),
    print_blob=True,
)
settings.load_profile("ottla")


def pytest_configure(config: pytest.Config) -> None:
    plugin.start(config)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Fail a test that switches off logging for all tests that follow it in the same process."""
    yield
    level = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    assert level == logging.NOTSET, "this test leaves logging disabled"
