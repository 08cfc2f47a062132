"""Refusing a request that only the active controller, or the leader of the quorum, can serve."""

from typing import Any, Final

from ottla.quorum.controller.deciders import find_decider
from ottla.quorum.controller.decision import Refusal
from ottla.quorum.raft.messages import refusal_of
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

SERVED_BY_LEADER: Final = (DescribeQuorumRequest, AddRaftVoterRequest, RemoveRaftVoterRequest)
"""What brokers pass on for their clients, and the leader's replica answers, not its controller."""


def refuse(ask: Any, refusal: Refusal) -> Any:
    """Return the response that refuses a request as a whole."""
    if isinstance(ask, SERVED_BY_LEADER):
        return refusal_of(ask, refusal.error_code, refusal.message)
    return find_decider(type(ask)).refuse(ask, refusal)
