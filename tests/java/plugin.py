"""The part of pytest that says who answers for Apache Kafka: `--oracle recorded|live|record`.

Tests that need Apache Kafka as a process are marked `live_oracle` and are left out unless `--oracle live` is
given. With `--oracle record` only those tests run whose questions are recorded.
"""

from collections.abc import Iterator

import pytest
from tests.java import host, oracle, rounds


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--oracle",
        choices=oracle.MODES,
        default=oracle.RECORDED,
        help="who answers for Apache Kafka: recorded answers, Apache Kafka itself, or that, written down",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Remember the choice before modules of tests are imported, since they count their seeds by it."""
    rounds.choose(config.getoption("--oracle"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the choice leaves out."""
    mode = config.getoption("--oracle")
    if mode == oracle.LIVE:
        return
    if mode == oracle.RECORD:
        left_out = [item for item in items if "oracle" not in getattr(item, "fixturenames", ())]
    else:
        left_out = [item for item in items if item.get_closest_marker("live_oracle")]
    if left_out:
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(name="oracle")
def oracle_of_test(request: pytest.FixtureRequest) -> Iterator[oracle.Oracle]:
    """Whoever answers the questions of this test for Apache Kafka."""
    mode = request.config.getoption("--oracle")
    module, _, test = request.node.nodeid.partition("::")
    if mode == oracle.LIVE:
        yield oracle.Oracle()
    elif mode == oracle.RECORDED:
        yield oracle.recording(module, test)
    else:
        recorder = oracle.Recorder()
        yield recorder
        _written.setdefault(module, {})[test] = recorder.lines


_written: dict[str, dict[str, list[str]]] = {}


def pytest_sessionfinish() -> None:
    """Write down what was recorded: tests that did not run now keep what they had."""
    host.close_hosts()
    for module, answers in _written.items():
        oracle.write_answers(module, {**oracle.read_answers(module), **answers})
    _written.clear()
