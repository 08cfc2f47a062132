"""What is wrong with a heartbeat in itself, whatever the group: the checks in Kafka's order."""

from typing import Final

from ottla.coordination.group.modern.member import LEFT, LEFT_FOR_NOW
from ottla.coordination.group.refusal import Refused
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

JOIN_EPOCH: Final = 0
_FIRST_VERSION_WITH_OWN_ID: Final = 1
_BLANKS: Final = "".join(map(chr, range(33)))
"""As in Java, everything up to the space character is blank."""


def check_heartbeat(ask: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]) -> None:
    """Raise `Refused` if a request cannot be served."""
    epoch = ask.member_epoch
    # In version 0 the coordinator gives the member its id.
    if version >= _FIRST_VERSION_WITH_OWN_ID or epoch > 0 or epoch == LEFT:
        _check_text("MemberId", ask.member_id)
    _check_text("GroupId", ask.group_id)
    _check_text("InstanceId", ask.instance_id)
    _check_text("RackId", ask.rack_id)
    if epoch == JOIN_EPOCH:
        _check_join(ask)
    elif epoch == LEFT_FOR_NOW and ask.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_NOW:
        raise _invalid("MemberEpoch is invalid.")
    if ask.server_assignor is not None and ask.server_assignor not in assignors:
        known = ", ".join(assignors)
        message = f"ServerAssignor {ask.server_assignor} is not supported. Supported assignors: {known}."
        raise Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_join(ask: ConsumerGroupHeartbeatRequest) -> None:
    if ask.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in the first request.")
    if ask.topic_partitions is None or ask.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if ask.subscribed_topic_names is None and ask.subscribed_topic_regex is None:
        raise _invalid("SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_text(name: str, text: str | None) -> None:
    if text is not None and not text.lstrip(_BLANKS):
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
