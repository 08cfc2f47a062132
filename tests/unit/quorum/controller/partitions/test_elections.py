"""ElectLeaders of all partitions answers for those that somebody could lead."""

from tests.support.deciding import DecidingController, registration

from ottla.quorum.controller.partitions.elections import decide_elect_leaders
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.metadata_records.partitions import PartitionChangeRecord

UNCLEAN = 1


def test_the_journal_of_a_node_that_is_down_is_no_error() -> None:
    controller = DecidingController([registration(0), registration(1)])
    for name in ("orders", "__ottla_journal"):
        topic = controller.have(name, (0,), (1,))
        controller.replay(PartitionChangeRecord(partition_id=1, topic_id=topic.id, leader=-1))
    controller.replay(registration(1, fenced=True))
    reply = controller.ask(
        decide_elect_leaders, ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None)
    )
    (result,) = reply.replica_election_results
    assert result.topic == "orders"
    (refused,) = result.partition_results
    assert (refused.partition_id, refused.error_code) == (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
