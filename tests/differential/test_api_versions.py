"""ApiVersions lists what Apache Kafka 4.3.1 lists: every API that a broker serves, version by version.

`test_controller_listener.py` compares the listeners of controllers.
"""

from typing import Any

import pytest
from tests.differential.side_by_side import Both, versions_of

from ottla.wire.apis import ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest

APIS_OF_A_BROKER = 75


def _listed(answer: Any) -> list[tuple[str, int, int]]:
    return sorted((ApiKey(one.api_key).name, one.min_version, one.max_version) for one in answer.api_keys)


@pytest.mark.parametrize("version", versions_of(ApiKey.API_VERSIONS))
def test_a_broker_lists_the_apis_that_kafka_lists(both: Both, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert len(both.ask(request, version, _listed)) == APIS_OF_A_BROKER


@pytest.mark.parametrize("version", versions_of(ApiKey.API_VERSIONS))
def test_a_broker_lists_the_features_that_kafka_lists(both: Both, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    both.ask(
        request,
        version,
        lambda answer: (sorted(answer.supported_features), sorted(answer.finalized_features)),
    )
