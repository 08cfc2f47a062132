"""Nothing lost, nothing twice, nothing torn, whatever happens to the node: a short campaign."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cluster.guarantees import CLIENTS, run_slice
from tests.cluster.node_faults import NodeFaults
from tests.cluster.offset_accounting import check_offsets

from ottla.testing.guarantees.campaign import Result

OPERATIONS = 800


class Campaign(NamedTuple):
    name: str
    seed: int
    root: Path
    result: Result
    faults: NodeFaults


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            client,
            marks=()
            if client == "ottla"
            else pytest.mark.thorough(
                guard="tests/cluster/test_guarantees.py::test_transactions_keep_their_guarantees_through_kills_and_pauses"
            ),
        )
        for client in CLIENTS
    ],
)
def campaign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    seed = random.SystemRandom().randrange(1_000_000)
    root = tmp_path_factory.mktemp("guarantees")
    return Campaign(request.param, seed, root, *run_slice(root, seed, OPERATIONS, 5, CLIENTS[request.param]))


def test_transactions_keep_their_guarantees_through_kills_and_pauses(campaign: Campaign) -> None:
    again = (
        f"make crash WHAT=guarantees SEED={campaign.seed} TIMES={OPERATIONS} WITH='--client {campaign.name}'"
    )
    assert campaign.result.anomalies == [], again
    assert campaign.faults.kills + campaign.faults.pauses > 0, "something was broken"
    assert campaign.result.committed > OPERATIONS / 2, f"the clients got on: {campaign.result.counts}"
    assert campaign.result.counts["copy ok"], "something was copied"
    assert campaign.result.counts["look ok"], "somebody looked"


def test_every_offset_that_readers_did_not_see_is_accounted_for(campaign: Campaign) -> None:
    assert check_offsets(campaign.root / "node" / "data", campaign.root / "history.jsonl") > OPERATIONS / 2
