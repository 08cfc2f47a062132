"""ElectLeaders in versions that can and cannot say that the request as a whole was refused."""

from types import SimpleNamespace

import pytest

from ottla.broker.apis.replicas.elect_leaders import elect_leaders
from ottla.broker.deferred import Deferred
from ottla.quorum.controller.deciders import NOT_CONTROLLER
from ottla.quorum.controller.partitions.elections import refuse_elect_leaders
from ottla.wire.codec import decode, encode
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_refusal_can_be_told_in_every_version(version: int) -> None:
    ask = ElectLeadersRequest(topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),))
    context = SimpleNamespace(
        version=version,
        ask_controller=lambda ask: Deferred.of(refuse_elect_leaders(ask, NOT_CONTROLLER)),
    )
    answer = elect_leaders(ask, context).value()  # type: ignore[arg-type]
    told = decode(ElectLeadersResponse, encode(answer, version), version)
    assert told.replica_election_results[0].partition_results[0].error_code is ErrorCode.NOT_CONTROLLER
