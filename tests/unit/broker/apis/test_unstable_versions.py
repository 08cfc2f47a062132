"""Versions that are not final yet are offered to those who ask for them in the configuration."""

from pathlib import Path

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

UNSTABLE = {"unstable.api.versions.enable": "true"}
TRANSACTION = 1


@pytest.mark.parametrize(("settings", "newest"), [({}, 5), (UNSTABLE, 6)], ids=["stable", "unstable"])
def test_the_newest_version_is_listed_if_it_is_offered(
    settings: dict[str, str], newest: int, tmp_path: Path
) -> None:
    with in_process_node(tmp_path, settings) as node:
        answer = InProcessClient(node).ask(
            ApiVersionsRequest(client_software_name="a", client_software_version="1")
        )
        listed = {one.api_key: one.max_version for one in answer.api_keys}
        assert listed[ApiKey.INIT_PRODUCER_ID] == newest


def test_a_version_that_is_not_final_is_served(tmp_path: Path) -> None:
    with in_process_node(tmp_path, UNSTABLE) as node:
        client = InProcessClient(node)
        client.ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=("t",)))
        ask = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
        answer = client.ask(ask, 6)
        assert (answer.error_code, answer.ongoing_txn_producer_id) == (ErrorCode.NONE, -1)
