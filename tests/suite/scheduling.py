"""Which worker runs a test, and when.

Tests that share what is dear to set up run in one worker. Tests that start processes wait for half of their
time, and others need a core all the time: they are mixed, so that the cores have something to do from the
beginning to the end. Long ones begin early.

xdist can do this by itself (`--dist loadgroup`), but it appends the group to the name of a test, and pytest
9.2 keeps that name elsewhere: the groups were lost without a word, and each worker started all that is
shared. Here a group follows from the name.
"""

from collections.abc import Iterable
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SHARING_FOLDERS: Final = ("tests/pipelines", "tests/connect", "tests/registry", "tests/golden", "tests/tidy")
"""Their files share a Spark session, a node with a worker or a registry, archives that are unpacked, or the
source as syntax trees."""


WAITING_FOLDERS: Final = (
    "pipelines",
    "docs",
    "connect",
    "registry",
    "cluster",
    "clients",
    "cli",
    "lab",
    "damage",
)
"""Folders whose tests start processes, those of the longest groups first."""
BUSY_FOLDERS: Final = ("simulation", "golden", "differential", "tidy", "property")
"""Folders whose tests compute, those of the longest groups first. All others come behind them."""
_WAITING_ENDS: Final = 0.9
"""By then all groups that wait have begun: at the end none should be left alone."""


def group_of(test: str) -> str:
    """Return what runs in one worker: a folder whose files share something, or a file."""
    file = test.partition("::")[0]
    return next((folder for folder in SHARING_FOLDERS if file.startswith(f"{folder}/")), file)


def mixed(groups: Iterable[str]) -> list[str]:
    """Return groups in the order in which they begin. Those of one folder stay in their order."""
    waiting: list[str] = []
    busy: list[str] = []
    for group in groups:
        (waiting if _folder(group) in WAITING_FOLDERS else busy).append(group)
    waiting.sort(key=lambda group: WAITING_FOLDERS.index(_folder(group)))
    busy.sort(key=_rank_of_busy)
    places = [(_WAITING_ENDS * number / len(waiting), group) for number, group in enumerate(waiting)]
    places += [(number / len(busy), group) for number, group in enumerate(busy)]
    places.sort(key=lambda place: place[0])
    return [group for _, group in places]


def _rank_of_busy(group: str) -> int:
    folder = _folder(group)
    return BUSY_FOLDERS.index(folder) if folder in BUSY_FOLDERS else len(BUSY_FOLDERS)


def _folder(group: str) -> str:
    return "/".join(group.split("/")[1:2])


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives groups to workers in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        # The default begins with the groups of most tests, which are the cheapest.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
