"""What follows the records: topics, partitions, configs, access rules, committed offsets and log starts.

In exact copies offsets are the same on both sides, so the offsets of a group need no translation. A group
that has members in the target is left alone. Topics that are deleted in the source stay in the target.

In MirrorMaker 2's way, topics, partitions, configs and rules follow by its rules. Offsets and log starts do
not: the first are translated (`maker/checkpoints.py`), and a copy has a retention of its own.
"""

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from ottla.client.admin import Admin
from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource, Rule
from ottla.client.admin.topics import NewTopic, TopicListing
from ottla.client.errors import BrokerError, ClientError
from ottla.mirror.halting import (
    ALL_CONFIGS,
    SOURCE_CONFIG,
    TOPIC_ID_CONFIG,
    halt,
    halted_partitions,
    own_configs,
    reason_against_source,
    reason_of_loss,
)
from ottla.mirror.link import Link
from ottla.mirror.progress import Progress
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger("ottla.mirror")

# What depends on the brokers of a cluster, not on the topic, as in MirrorMaker 2.
_LEFT_OUT: Final = frozenset(
    (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        *ALL_CONFIGS,
    )
)
_ALL_TOPICS: Final = "*"


class NotAnOttla(ClientError):
    """A target that cannot keep offsets."""


class _Round:
    """What one look at both clusters has found."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, TopicPartition] = {}
        self.halted: dict[TopicPartition, str] = {}
        self.errors: dict[str, str] = {}
        # Copies of which it is not known how they are.
        self.unclear: set[str] = set()


class Following:
    """Makes the target follow the source, a round at a time."""

    def __init__(self, link: Link, source: Admin, target: Admin, progress: Progress) -> None:
        self._link = link
        self._source = source
        self._target = target
        self._progress = progress

    async def topics(self) -> dict[TopicPartition, TopicPartition]:
        """Make topics, partitions and configs follow. Returns what to copy: partitions by target name."""
        await self._halt()
        known = {where for where, part in self._progress.partitions.items() if part.halted}
        wanted = {
            item.name: item for item in await self._source.topics.list() if self._link.wants_topic(item.name)
        }
        there = {item.name: item.partitions for item in await self._target.topics.list()}
        found = _Round()
        configs = await own_configs(self._source, list(wanted))
        ours = await own_configs(self._target, {self._link.target_name(name) for name in wanted})
        for name, item in wanted.items():
            copy = self._link.target_name(name)
            try:
                await self._topic(found, item, there.get(copy), configs.get(name), ours.get(copy))
            except BrokerError as error:
                found.errors[copy] = str(error)
                found.unclear.add(copy)
        for copy, name in (await self._left_behind(there, wanted)).items():
            reason = str(reason_against_source(name, None, {}))
            for number in range(there[copy]):
                found.partitions[TopicPartition(copy, number)] = TopicPartition(name, number)
                found.halted[TopicPartition(copy, number)] = reason
        self._keep_unclear(found)
        self._progress.topic_errors = found.errors
        self._progress.topic_ids = {name: item.topic_id for name, item in wanted.items()}
        self._progress.halted = found.halted
        for where in known - found.halted.keys():
            # The mark was there before, and is gone: an operator has let it go on.
            part = self._progress.partitions.get(where)
            if part is not None and where.topic not in found.unclear:
                part.has_lost = part.halted = False
        return found.partitions

    async def _topic(
        self,
        found: "_Round",
        item: TopicListing,
        there: int | None,
        configs: Mapping[str, str] | None,
        ours: Mapping[str, str] | None,
    ) -> None:
        """Let one copy follow. `there` is how many partitions it has, None if there is no copy."""
        name, copy, count = item.name, self._link.target_name(item.name), item.partitions
        if (reason := self._reason_against(name, ours)) is not None:
            found.errors[copy] = reason
            return
        if configs is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the source does not show {name!r} now")
        if there is None:
            await self._create(copy, count, configs, item.topic_id)
        elif ours is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the target does not show {copy!r} now")
        elif self._link.maker is None and (reason := reason_against_source(name, item.topic_id, ours)):
            count = there
            found.halted |= dict.fromkeys((TopicPartition(copy, number) for number in range(count)), reason)
        else:
            await self._keep_up(copy, there, count, configs, ours, item.topic_id)
        for number in range(count):
            found.partitions[TopicPartition(copy, number)] = TopicPartition(name, number)
        for number in halted_partitions(ours or {}):
            where = TopicPartition(copy, number)
            found.halted.setdefault(where, reason_of_loss(TopicPartition(name, number)))

    def _keep_unclear(self, found: "_Round") -> None:
        """Leave copies as they were with which something failed.

        One of them may wait for an operator, and nobody else may know it yet.
        """
        for where, part in self._progress.partitions.items():
            if where.topic in found.unclear:
                found.partitions[where] = part.source
                if where in self._progress.halted:
                    found.halted[where] = self._progress.halted[where]

    async def _halt(self) -> None:
        """Keep in the target what has to wait for an operator, if that did not work at once."""
        for where, part in self._progress.partitions.items():
            if part.has_lost and not part.halted:
                await self.halt(where)

    async def halt(self, where: TopicPartition) -> None:
        """Let a partition wait for an operator, also after a restart."""
        await halt(self._target, where.topic, where.partition)
        if where in self._progress.partitions:
            self._progress.partitions[where].halted = True

    async def _left_behind(self, there: Collection[str], wanted: Collection[str]) -> dict[str, str]:
        """Return copies whose topics are not in the source any more, with the names that those had."""
        if self._link.maker is not None:
            return {}
        prefix = self._link.prefix
        names = {copy: copy.removeprefix(prefix) for copy in there if copy.startswith(prefix)}
        gone = {
            copy: name for copy, name in names.items() if self._link.wants_topic(name) and name not in wanted
        }
        ours = await own_configs(self._target, gone, (SOURCE_CONFIG,))
        return {
            copy: name
            for copy, name in gone.items()
            if ours.get(copy, {}).get(SOURCE_CONFIG) == self._link.source_name
        }

    def _reason_against(self, name: str, ours: Mapping[str, str] | None) -> str | None:
        """Say why a topic must not be mirrored, if there is a reason. `ours` is what its copy has set."""
        if self._link.maker is not None:
            if self._link.maker.goes_round(name):
                return (
                    "both directions mirror it under the same name, so its records would go round without "
                    "end. Mirror it one way, or use DefaultReplicationPolicy"
                )
            return None
        if ours is not None and ours.get(SOURCE_CONFIG) != self._link.source_name:
            return (
                f"it is not a mirror of {self._link.source_name}: it was there before, or was made "
                "writable. Delete it to mirror again"
            )
        return None

    async def _create(self, copy: str, count: int, configs: Mapping[str, str], topic_id: Uuid) -> None:
        new = NewTopic(
            copy,
            partitions=count,
            replication_factor=self._link.replication_factor if self._link.replication_factor > 0 else None,
            configs=self._followed(configs) | self._mark(topic_id),
        )
        try:
            (await self._target.topics.create_many([new])).check()
        except BrokerError as error:
            if error.error_code is ErrorCode.INVALID_CONFIG and SOURCE_CONFIG in str(error):
                raise NotAnOttla(
                    "the target does not keep the offsets of a source: it is not Ottla. Over Kafka's "
                    "protocol alone nobody can write a record at a given offset, so use "
                    "--way mirror-maker, which translates offsets"
                ) from error
            raise

    async def _keep_up(
        self,
        copy: str,
        there: int,
        count: int,
        configs: Mapping[str, str],
        ours: Mapping[str, str],
        topic_id: Uuid,
    ) -> None:
        if there < count:
            await self._target.topics.add_partitions(copy, count)
        if self._link.maker is not None and not self._link.maker.syncs_topic_configs:
            return
        theirs, own = self._followed(configs), self._followed(ours)
        changes: dict[str, str | None] = {
            name: value for name, value in theirs.items() if own.get(name) != value
        }
        changes |= {name: None for name in own if name not in theirs}
        changes |= {name: value for name, value in self._mark(topic_id).items() if name not in ours}
        if changes:
            await self._target.configs.alter(ResourceType.TOPIC, copy, changes)

    def _followed(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Return the configs that follow the source."""
        maker = self._link.maker
        if maker is None:
            return {name: value for name, value in configs.items() if name not in _LEFT_OUT}
        return {
            name: value for name, value in configs.items() if not re.fullmatch(maker.configs_exclude, name)
        }

    def _mark(self, topic_id: Uuid) -> dict[str, str]:
        """What an exact copy has set, and others have not."""
        if self._link.maker is not None:
            return {}
        remembered = {} if topic_id == ZERO_UUID else {TOPIC_ID_CONFIG: str(topic_id)}
        return {SOURCE_CONFIG: self._link.source_name, **remembered}

    async def access_rules(self) -> None:
        """Copy who may read: rules for writing are left out, since a mirror takes no writes."""
        maker = self._link.maker
        if maker is not None and not maker.syncs_topic_acls:
            return
        try:
            theirs = await self._source.access_rules.list(resource=Resource.TOPIC)
            ours = await self._target.access_rules.list(resource=Resource.TOPIC)
        except BrokerError as error:
            if error.error_code is ErrorCode.SECURITY_DISABLED:
                return
            raise
        names = {part.source.topic: where.topic for where, part in self._progress.partitions.items()}
        wanted = {copy for rule in theirs if (copy := self._copied(rule, names)) is not None}
        if missing := wanted - set(ours):
            await self._target.access_rules.create(sorted(missing))
        if maker is not None:
            # There, operators may add rules of their own.
            return
        mirrored = set(names.values())
        gone = {
            rule
            for rule in ours
            if _lets_read(rule)
            and rule.pattern == Pattern.LITERAL
            and rule.name in mirrored
            and rule not in wanted
        }
        if gone:
            await self._target.access_rules.delete(sorted(gone))

    def _copied(self, rule: Rule, names: Mapping[str, str]) -> Rule | None:
        if rule.permission == Permission.ALLOW and rule.operation == Operation.WRITE:
            return None
        if rule.permission == Permission.ALLOW and rule.operation == Operation.ALL:
            rule = rule._replace(operation=Operation.READ)
        if rule.pattern == Pattern.LITERAL and rule.name != _ALL_TOPICS:
            return rule._replace(name=names[rule.name]) if rule.name in names else None
        if self._link.maker is not None:
            return None
        if rule.pattern == Pattern.PREFIXED:
            return rule._replace(name=self._link.target_name(rule.name))
        return rule

    async def groups(self) -> None:
        """Copy committed offsets, as far as what they point to has been copied."""
        copies = {part.source: where for where, part in self._progress.partitions.items()}
        for listed in await self._source.groups.list():
            if listed.type.lower() not in ("", "classic", "consumer"):
                continue
            if not self._link.wants_group(listed.group_id):
                continue
            theirs = await self._source.group_offsets.list(listed.group_id)
            wanted = {
                copies[where]: replace(
                    item, offset=min(item.offset, self._copied_to(copies[where])), leader_epoch=-1
                )
                for where, item in theirs.items()
                if where in copies and self._may_follow(copies[where])
            }
            if not wanted:
                continue
            try:
                ours = await self._target.group_offsets.list(listed.group_id, tuple(wanted))
                changed = {
                    where: item
                    for where, item in wanted.items()
                    if where not in ours or ours[where].offset != item.offset
                }
                if changed:
                    # A group with members refuses: it reads here already.
                    await self._target.group_offsets.alter(listed.group_id, changed)
            except BrokerError as error:
                _logger.info("the offsets of group %r do not follow: %s", listed.group_id, error)

    async def log_starts(self) -> None:
        """Remove what the source has removed."""
        behind = {
            where: min(part.source_start, part.copied_to)
            for where, part in self._progress.partitions.items()
            if part.source_start > 0 and part.copied_to > 0 and part.error is None
        }
        if not behind:
            return
        # The target is asked each time: a power cut may have brought back what was removed, and a copy may
        # have been made again.
        starts = (await self._target.offsets.earliest(list(behind))).succeeded
        changed = {
            where: offset
            for where, offset in behind.items()
            if where in starts and starts[where].offset < offset
        }
        if changed:
            await self._target.records.delete(changed)

    def _may_follow(self, where: TopicPartition) -> bool:
        # Where the source is another topic than the one that was copied, its offsets mean something else.
        part = self._progress.partitions[where]
        return part.copied_to >= 0 and not part.has_lost

    def _copied_to(self, where: TopicPartition) -> int:
        return self._progress.partitions[where].copied_to


def _lets_read(rule: Rule) -> bool:
    return rule.permission == Permission.ALLOW and rule.operation == Operation.READ
