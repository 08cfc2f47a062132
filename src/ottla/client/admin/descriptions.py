"""Descriptions of groups and their members, whatever their kind."""

from dataclasses import dataclass

from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One line of the list of groups. Old brokers tell no state (before 2.6) and no type (before 3.8): ""."""

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member of a group.

    `epoch` and `target_assignment` are None under the classic protocol, where there is no such thing.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack_id: str | None
    epoch: int | None
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members. `type` is that of the protocol; the epochs are None for a classic group."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    epoch: int | None
    assignment_epoch: int | None
    members: tuple[MemberDescription, ...]
