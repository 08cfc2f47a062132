"""Peers never log in. A client is served, and memory is bounded. `make crash WHAT=siege` for more."""

from pathlib import Path

import pytest
from tests.cluster.siege import run_siege

MEMORY_BYTES_MAX = 64 << 20


@pytest.mark.thorough(
    guard="tests/cluster/test_logins.py::test_silent_and_half_open_peers_do_not_keep_others_from_logging_in"
)
def test_a_client_is_served_while_hundreds_of_peers_do_not_log_in(tmp_path: Path) -> None:
    siege = run_siege(tmp_path, peers=500, rate=150, seconds=4)
    assert siege.attacks["ANSWERED"] == 0
    # All kinds of them were there.
    assert min(siege.attacks[name] for name in ("silent", "garbage", "slow frame", "wrong password")) > 0
    assert siege.besieged_ms
    assert siege.bytes_most - siege.bytes_before < MEMORY_BYTES_MAX, siege
