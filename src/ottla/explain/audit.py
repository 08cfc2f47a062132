"""Which delivery guarantee holds, hop by hop: producing, storing, reading, and what a pipeline writes.

Each hop is judged by what can be seen of it, not by what somebody has configured: producer ids and
transactions in the log, replicas and configs, commits and how they follow positions, ledgers of pipelines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.explain.access import Access
from ottla.explain.evidence.cases import GroupCase, gather_group, topic_configs
from ottla.explain.evidence.logs import LogSample
from ottla.model.ledger_groups import LEDGER_PREFIX

EXACTLY_ONCE: Final = "exactly once"
AT_LEAST_ONCE: Final = "at least once"
AT_MOST_ONCE: Final = "at most once"
MAY_LOSE: Final = "may lose"
UNKNOWN: Final = "unknown"
_ORDER: Final = (MAY_LOSE, AT_MOST_ONCE, UNKNOWN, AT_LEAST_ONCE, EXACTLY_ONCE)
"""The weakest first. What is not known may be as weak as at most once."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of a record, what it guarantees, why, and what would change that."""

    hop: str
    guarantee: str
    why: str
    to_improve: str | None = None


def weakest(hops: list[Hop]) -> str:
    """Return what holds from end to end: no more than the weakest hop gives."""
    return min((hop.guarantee for hop in hops), key=_ORDER.index, default=UNKNOWN)


async def audit(access: Access, group_id: str) -> list[Hop]:
    """Look at all hops of what a group reads."""
    case = await gather_group(access, group_id, 1.0, with_log=True)
    listed = {item.group_id for item in await access.admin.groups.list()}
    hops = list(_producing(case.log)) if case.log is not None else []
    for topic in sorted({item.lag.where.topic for item in case.partitions}):
        hops += await _storing(access, topic)
    hops += judge_reading(case)
    if f"{LEDGER_PREFIX}{group_id}" in listed:
        hops.append(
            Hop(
                f"pipeline {group_id} writes",
                EXACTLY_ONCE,
                f"each task writes in a transaction that also notes its batch in {LEDGER_PREFIX}{group_id}",
            )
        )
    return hops


def _producing(log: LogSample) -> Iterator[Hop]:
    for topic in sorted({batch.where.topic for batch in log.batches}):
        batches = [one for one in log.batches if one.where.topic == topic and not one.is_control]
        bare = sum(one.producer_id < 0 for one in batches)
        in_transaction = sum(one.is_transactional for one in batches)
        name = f"producers of {topic}"
        if bare:
            yield Hop(
                name,
                AT_LEAST_ONCE,
                f"{bare} of {len(batches)} batches have no producer id: a retry may write them twice",
                "set enable.idempotence=true",
            )
        elif in_transaction == len(batches):
            yield Hop(name, EXACTLY_ONCE, f"all {len(batches)} batches are in transactions")
        else:
            yield Hop(
                name,
                EXACTLY_ONCE,
                f"all {len(batches)} batches have producer ids and sequences; a restart may send again",
                "use transactions if a producer that restarts may send again",
            )


async def _storing(access: Access, topic: str) -> list[Hop]:
    configs = (await topic_configs(access, [topic])).get(topic)
    described = (await access.admin.topics.describe_many([topic])).succeeded.get(topic)
    if described is None:
        return []
    return [judge_storing(topic, described.replication_factor, configs)]


def judge_storing(topic: str, replicas: int, configs: Mapping[str, str | None] | None) -> Hop:
    """Judge a topic by the configs in force."""
    name = f"topic {topic}"
    if not configs:
        return Hop(name, UNKNOWN, "its configs may not be described", "ask as a user who may describe them")
    needed = int(configs.get("min.insync.replicas") or 1)
    is_unclean = configs.get("unclean.leader.election.enable") == "true"
    # Apache Kafka has no such config, and acknowledges before it syncs.
    syncs = configs.get("ottla.acks.all.sync") == "true"
    is_ottla = "ottla.acks.all.sync" in configs
    if is_unclean:
        return Hop(
            name,
            MAY_LOSE,
            "unclean.leader.election.enable lets a replica lead that does not have everything",
            "set unclean.leader.election.enable=false",
        )
    if replicas > 1 and needed < 2:
        return Hop(
            name,
            MAY_LOSE,
            f"{replicas} replicas, but min.insync.replicas=1: a write may be on one disk only",
            "set min.insync.replicas=2",
        )
    if replicas == 1 and not syncs:
        return Hop(
            name,
            MAY_LOSE,
            "one replica, and writes are acknowledged before they are on disk",
            "use three replicas" + (", or set ottla.acks.all.sync=true" if is_ottla else ""),
        )
    where = "on disk" if syncs else "in memory of all in-sync replicas"
    return Hop(
        name,
        EXACTLY_ONCE,
        f"{replicas} replicas, at least {needed} in sync, acknowledged when {where} (with acks=all)",
        "use three replicas: the only one is lost with its disk" if replicas == 1 else None,
    )


def judge_reading(case: GroupCase) -> list[Hop]:
    """Judge a group by its commits."""
    name = f"group {case.group_id} reads"
    commits = case.history.commits
    if not commits:
        return [Hop(name, UNKNOWN, "it has committed nothing that is still known")]
    if all(commit.is_transactional for commit in commits):
        return [Hop(name, EXACTLY_ONCE, "all offsets are committed in transactions, with what is written")]
    ahead = 0
    seen = 0
    for event in case.journal.of("fetch-position"):
        for where, position in event.positions().items():
            commit = case.history.committed_at(where, event.at_ms)
            if commit is None or commit.offset is None or event.facts.get("client") not in case.clients:
                continue
            seen += 1
            ahead += commit.offset > position
    if seen and ahead > seen / 2:
        return [
            Hop(
                name,
                AT_MOST_ONCE,
                "it commits offsets before it has fetched the records",
                "commit after processing",
            )
        ]
    return [
        Hop(
            name,
            UNKNOWN,
            f"{len(commits)} plain commits: at least once if the application commits after processing, "
            "at most once if before; the commits do not show which",
            "commit after processing, and make it idempotent, or commit in the transaction that writes the "
            "result",
        )
    ]
