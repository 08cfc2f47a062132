"""Bugs to plant in share groups, to see whether the simulation finds them."""

from collections.abc import Callable
from typing import Any

from pytest import MonkeyPatch  # noqa: PT013 - the type alone

from ottla.broker.share.acquiring import Acquiring
from ottla.broker.share.in_flight import InFlight, Released
from ottla.broker.share.runs import RecordState, Run
from ottla.broker.share.share_partition import SharePartition
from ottla.coordination.group.share import assignor
from ottla.wire.error_code import ErrorCode


def answer_before_it_is_written(patch: MonkeyPatch) -> None:
    acknowledge = SharePartition.acknowledge

    def early(self: SharePartition, member: str, said: Any, done: Callable[..., None]) -> None:
        acknowledge(self, member, said, lambda *_: None)
        done(ErrorCode.NONE, None)

    patch.setattr(SharePartition, "acknowledge", early)


def give_a_record_to_two_members(patch: MonkeyPatch) -> None:
    patch.setattr(
        Run,
        "is_free",
        property(
            lambda run: run.pending is None and run.state in (RecordState.AVAILABLE, RecordState.ACQUIRED)
        ),
    )
    # They are looked for again after each fetch.
    patch.setattr(InFlight, "next_fetch_offset", lambda self: self.start)


def forget_to_count(patch: MonkeyPatch) -> None:
    take = Acquiring.take

    def uncounted(self: Acquiring, run: Run) -> None:
        if run.count:
            run.count -= 1
        take(self, run)

    patch.setattr(Acquiring, "take", uncounted)


def never_end_a_lock(patch: MonkeyPatch) -> None:
    patch.setattr(InFlight, "release_expired", lambda *_: Released([], []))
    patch.setattr(InFlight, "release_member", lambda *_: Released([], []))


def write_letters_without_looking(patch: MonkeyPatch) -> None:
    archive_dead = SharePartition._archive_dead

    def hasty(self: SharePartition) -> None:
        self._may_have_letters = False
        archive_dead(self)

    patch.setattr(SharePartition, "_archive_dead", hasty)


def archive_without_a_letter(patch: MonkeyPatch) -> None:
    patch.setattr(
        SharePartition, "_archive_dead", lambda self: self._archive(self.in_flight.archiving_runs())
    )


def give_the_first_member_everything(patch: MonkeyPatch) -> None:
    patch.setattr(
        assignor,
        "_quotas",
        lambda members, total: {name: 0 if number else total for number, name in enumerate(members)},
    )


BUGS = [
    answer_before_it_is_written,
    give_a_record_to_two_members,
    forget_to_count,
    never_end_a_lock,
    write_letters_without_looking,
    archive_without_a_letter,
    give_the_first_member_everything,
]
