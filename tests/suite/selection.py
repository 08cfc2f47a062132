"""Which tests a run of the suite takes: the words after `WHAT=`, as arguments of pytest.

Without any, all tests but those that are marked `thorough` or `live_oracle`. With `all`, every test there is,
and a live Apache Kafka is asked where its recorded answers serve otherwise. With a room of the source or a
folder of the tests, what guards it in half a minute.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LEFT_OUT: Final = ("thorough", "live_oracle")
"""The markers of tests that only `WHAT=all` runs."""

BESIDE_UNIT_TESTS: Final[dict[str, tuple[str, ...]]] = {
    "broker": ("property/test_produce_lane.py", "simulation/node", "golden/test_take_over.py"),
    "cli": ("cli",),
    "client": (
        "property/test_consumer_assignors.py",
        "clients/test_admin_of_ours.py",
        "clients/test_consumer_of_ours.py",
        "clients/test_faults_of_ours.py",
        "clients/test_producer_of_ours.py",
        "clients/test_raw_fetching.py",
        "clients/test_sync_of_ours.py",
        "clients/test_telemetry.py",
    ),
    "connect": ("simulation/connect", "connect"),
    "console": ("console",),
    "coordination": (
        "golden/test_groups.py",
        "golden/test_consumer_groups.py",
        "property/test_assignors.py",
        "simulation/groups",
        "simulation/consumer_groups",
        "simulation/share_groups",
        "simulation/streams_groups",
        "simulation/transactions",
    ),
    "explain": ("cli/test_explain.py", "cli/test_lag.py"),
    "lab": ("lab",),
    "metadata": (
        "golden/test_metadata_logs.py",
        "golden/test_configs.py",
        "property/test_metadata_images.py",
    ),
    "mirror": ("simulation/mirror",),
    "model": (),
    "pipelines": ("pipelines", "simulation/pipelines"),
    "quorum": ("golden/test_controller_decisions.py", "simulation/raft", "simulation/quorum"),
    "records": ("property/test_records.py", "property/test_bulk.py", "golden/test_batches.py"),
    "registry": ("registry", "simulation/registry", "golden/test_schema_verdicts.py"),
    "runtime": ("property/test_framing.py", "property/test_timers.py"),
    "satellite": ("unit/registry", "unit/connect"),
    "schemas": ("golden/test_schema_verdicts.py",),
    "security": ("property/test_access_rules.py",),
    "storage": ("property/storage", "simulation/storage", "golden/test_log_directories.py"),
    "testing": ("docs/test_testing_guide.py",),
    "wire": ("property/test_messages.py", "golden/test_frames.py", "golden/test_schemas.py"),
    "world": ("unit/runtime", "unit/testing"),
}
"""What guards a room of the source beside `tests/unit/ROOM`, below `tests`."""


class UnknownSelection(Exception):
    pass


def pytest_arguments(what: str) -> list[str]:
    """Return the arguments that select tests: for '', 'all', or rooms and folders with commas between."""
    if what == "all":
        return ["--oracle", "live", "tests"]
    quick = ["-m", " and ".join(f"not {marker}" for marker in LEFT_OUT)]
    return [*quick, *(_paths_of_rooms(what.split(",")) if what else ["tests"])]


def _paths_of_rooms(rooms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(path for room in rooms for path in _paths(room)))


def _paths(room: str) -> Iterator[str]:
    found = [path for path in _candidates(room) if (ROOT / path).exists()]
    if not found:
        known = sorted(BESIDE_UNIT_TESTS | dict.fromkeys(path.name for path in (ROOT / "tests").iterdir()))
        raise UnknownSelection(
            f"WHAT={room} is no room of src/ottla and no folder of tests; there are all, {', '.join(known)}"
        )
    yield from found


def _candidates(room: str) -> Iterator[str]:
    if room not in BESIDE_UNIT_TESTS:
        yield f"tests/{room}"
        return
    yield f"tests/unit/{room}"
    for path in BESIDE_UNIT_TESTS[room]:
        yield f"tests/{path}"
