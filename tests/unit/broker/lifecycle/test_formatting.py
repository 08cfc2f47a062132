"""Formatting is done, or done again: whenever it is interrupted, the next start goes on."""

from random import Random

import pytest

from ottla.broker.lifecycle.formatting import FormatFailure, format_missing
from ottla.metadata.configs.load import load_node_config
from ottla.quorum.format import is_formatted
from ottla.storage.log_dirs.directories import open_directories
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk

PATHS = ["/data/one", "/data/two"]
CONFIG = load_node_config(b"", {"log.dirs": ",".join(PATHS)}).config
STEPS_MAX = 200
NOW_MS = 1_750_000_000_000


@pytest.mark.parametrize("loses_power", [True, False])
def test_formatting_that_is_interrupted_at_any_step_is_done_again(loses_power: bool) -> None:
    for step in range(1, STEPS_MAX):
        disk = SimulatedDisk(seed=step)
        disk.cut_power_after(step)
        try:
            format_missing(disk, CONFIG, PATHS, Random(1), NOW_MS)
        except PowerCut:
            if loses_power:
                disk.cut_power()
            else:
                disk.kill()
        else:
            assert step > 10, "it has many steps"
            return
        format_missing(disk, CONFIG, PATHS, Random(1), NOW_MS)
        assert all(is_formatted(disk, path) for path in PATHS)
        opened = open_directories([Volume(disk, path) for path in PATHS])
        assert len({directory.meta.cluster_id for directory in opened.directories}) == 1
        opened.release()
    pytest.fail("it has no end")


@pytest.mark.parametrize("name", ["notes.txt", "orders-0", "__cluster_metadata-0/quorum-state"])
def test_a_directory_with_something_else_in_it_is_refused(name: str) -> None:
    disk = SimulatedDisk()
    for directory in ("/data", "/data/one", "/data/one/__cluster_metadata-0"):
        disk.make_directory(directory)
    disk.open(f"/data/one/{name}", create=True)
    with pytest.raises(FormatFailure, match=name):
        format_missing(disk, CONFIG, PATHS, Random(1), NOW_MS)
