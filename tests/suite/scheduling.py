"""Which worker runs a test: tests that share what is dear to set up run in one.

xdist can do this by itself (`--dist loadgroup`), but it appends the group to the name of a test, and pytest
9.2 keeps that name elsewhere: the groups were lost without a word, and each worker started all that is
shared. Here a group follows from the name.
"""

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SHARING_FOLDERS: Final = ("tests/pipelines", "tests/connect", "tests/registry", "tests/golden", "tests/tidy")
"""Their files share a Spark session, a node with a worker or a registry, archives that are unpacked, or the
source as syntax trees."""


def group_of(test: str) -> str:
    """Return what runs in one worker: a folder whose files share something, or a file."""
    file = test.partition("::")[0]
    return next((folder for folder in SHARING_FOLDERS if file.startswith(f"{folder}/")), file)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives groups to workers in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        # The default begins with the groups of most tests, which are the cheapest.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
