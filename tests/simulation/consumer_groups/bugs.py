"""Bugs to plant, each a small change of the coordinator, to see whether the simulation finds them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pytest import MonkeyPatch  # noqa: PT013 - the type alone
from tests.simulation.groups.bugs import answer_before_the_commit, load_all_but_the_last_batch

from ottla.coordination.group.consumer import (
    assignors,
    departures,
    reconciliation,
    records,
    regexes,
    steps,
    target,
)
from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.groups import ConsumerGroups
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.reconciliation import Assignment, Goal, MemberState
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord


def give_away_what_somebody_holds(patch: MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "is_held", lambda _self, _topic, _number: False)


def believe_that_everything_was_given_up(patch: MonkeyPatch) -> None:
    patch.setattr(reconciliation, "_may_own", lambda _owned, _held: False)


def take_silence_for_giving_up(patch: MonkeyPatch) -> None:
    may_own = reconciliation._may_own
    patch.setattr(reconciliation, "_may_own", lambda owned, held: owned is not None and may_own(owned, held))


def forget_what_is_to_be_given_up(patch: MonkeyPatch) -> None:
    """A member that has to give something up is said to hold only what it keeps."""
    put = ConsumerGroup.put

    def put_without_pending(self: ConsumerGroup, member: Member) -> None:
        put(self, member.with_assignment(replace(member.assignment, pending_revocation={})))

    patch.setattr(ConsumerGroup, "put", put_without_pending)


def accept_commits_of_the_past(patch: MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "check_commit", lambda _self, _commit: None)
    patch.setattr(ConsumerGroup, "check_commit_to", lambda _self, _commit, _topic, _id, _number: None)


def take_members_away_in_the_wrong_order(patch: MonkeyPatch) -> None:
    def tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
        return [
            records.TOMBSTONES.member(group_id, member_id),
            records.TOMBSTONES.target(group_id, member_id),
            records.TOMBSTONES.current(group_id, member_id),
        ]

    patch.setattr(departures, "member_tombstones", tombstones)


def leave_the_target_of_a_member_that_left(patch: MonkeyPatch) -> None:
    def tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
        return [
            records.TOMBSTONES.current(group_id, member_id),
            records.TOMBSTONES.member(group_id, member_id),
        ]

    patch.setattr(departures, "member_tombstones", tombstones)


def start_no_sessions_after_loading(patch: MonkeyPatch) -> None:
    patch.setattr(ConsumerGroups, "activate", lambda _self: None)


def let_sessions_last_forever(patch: MonkeyPatch) -> None:
    patch.setattr(Sessions, "expect_heartbeat", lambda _self, _group, _member, _timeout_ms=None: None)


def never_look_at_topics_again(patch: MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "topics_have_changed", lambda _self: None)


def never_resolve_expressions_again(patch: MonkeyPatch) -> None:
    patch.setattr(steps, "is_refresh_due", lambda group, *_: not group.resolved_regexes)


def hand_out_no_more_once_somebody_waited(patch: MonkeyPatch) -> None:
    go_on = reconciliation.reconcile

    def waits_forever(
        current: Assignment, goal: Goal, owned: Partitions | None, subscription_changed: bool = False
    ) -> Assignment:
        if current.state is MemberState.UNRELEASED_PARTITIONS and current.member_epoch == goal.target_epoch:
            return current
        return go_on(current, goal, owned, subscription_changed)

    patch.setattr(steps, "reconcile", waits_forever)


def hold_partitions_of_members_that_left(patch: MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_let_go", lambda _self, _member: None)


def forget_a_partition(patch: MonkeyPatch) -> None:
    assign = assignors.ASSIGNORS["uniform"]

    def forgetful(wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]) -> Mapping[str, Partitions]:
        return assign(wishes, {topic: max(count - 1, 1) for topic, count in topics.items()})

    patch.setattr(target, "ASSIGNORS", {"uniform": forgetful, "range": forgetful})


def do_not_bump_the_epoch_when_a_member_leaves(patch: MonkeyPatch) -> None:
    patch.setattr(
        departures,
        "epoch_record",
        lambda group_id, epoch, metadata_hash: records.epoch_record(group_id, epoch - 1, metadata_hash),
    )


def resolve_only_some_topics(patch: MonkeyPatch) -> None:
    patch.setattr(regexes, "find_matches", lambda _regex, _names: [])


BUGS: tuple[Callable[[MonkeyPatch], Any], ...] = (
    answer_before_the_commit,
    load_all_but_the_last_batch,
    give_away_what_somebody_holds,
    believe_that_everything_was_given_up,
    take_silence_for_giving_up,
    forget_what_is_to_be_given_up,
    accept_commits_of_the_past,
    take_members_away_in_the_wrong_order,
    leave_the_target_of_a_member_that_left,
    start_no_sessions_after_loading,
    let_sessions_last_forever,
    never_look_at_topics_again,
    never_resolve_expressions_again,
    hand_out_no_more_once_somebody_waited,
    hold_partitions_of_members_that_left,
    forget_a_partition,
    do_not_bump_the_epoch_when_a_member_leaves,
    resolve_only_some_topics,
)
