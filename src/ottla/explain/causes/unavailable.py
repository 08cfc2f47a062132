"""Partitions that nobody leads, and partitions that take no writes because too few replicas are in sync."""

from collections.abc import Iterator, Mapping

from ottla.explain.answer import Cause, Evidence, Strength
from ottla.explain.evidence.journal import JournalView
from ottla.explain.evidence.replicas import ReplicaStates
from ottla.model.ids import TopicPartition

Replicas = Mapping[TopicPartition, ReplicaStates]


def unavailable(
    replicas: Replicas, configs: Mapping[str, Mapping[str, str | None]], journal: JournalView
) -> Iterator[Cause]:
    """Find what the cluster cannot serve at this moment. It explains more than anything that clients do."""
    yield from _without_leader(replicas, journal)
    yield from _too_few_in_sync(replicas, configs, journal)


def _without_leader(replicas: Replicas, journal: JournalView) -> Iterator[Cause]:
    gone = sorted(where for where, one in replicas.items() if one.leader < 0)
    if not gone:
        return
    nodes = sorted({node for where in gone for node in replicas[where].offline or replicas[where].replicas})
    yield Cause(
        "partition-without-leader",
        Strength.PROVED,
        f"{', '.join(map(str, gone[:4]))}{' and more' * (len(gone) > 4)} {_have(gone)} no leader, so nobody "
        f"reads or writes there: the replicas are on {_nodes(nodes)}, which {_are(nodes)} not available",
        (
            *(
                Evidence(
                    f"{where}: no leader, replicas on {_nodes(list(replicas[where].replicas))}",
                    f"ottla topic describe {where.topic}",
                )
                for where in gone[:3]
            ),
            *_last_changes(gone, journal),
        ),
        (
            f"start {_nodes(nodes)} again: `ottla cluster describe` shows which nodes are alive",
            "use three replicas: then the loss of a node stops nothing",
        ),
        weight=11,
    )


def _too_few_in_sync(
    replicas: Replicas, configs: Mapping[str, Mapping[str, str | None]], journal: JournalView
) -> Iterator[Cause]:
    for where, one in sorted(replicas.items()):
        text = configs.get(where.topic, {}).get("min.insync.replicas") or "1"
        # As brokers count: of a partition with fewer replicas than that, all are enough.
        needed = min(int(text) if text.isdecimal() else 1, len(one.replicas))
        if one.leader < 0 or len(one.in_sync) >= needed:
            continue
        missing = sorted(set(one.replicas) - set(one.in_sync))
        yield Cause(
            "too-few-in-sync",
            Strength.PROVED,
            f"{where} takes no writes with acks=all: {len(one.in_sync)} of its replicas are in sync, and "
            f"min.insync.replicas={needed}"
            f"; {_nodes(missing)} {_are(missing)} missing",
            (
                Evidence(
                    f"replicas on {_nodes(list(one.replicas))}, in sync on {_nodes(list(one.in_sync))}",
                    f"ottla topic describe {where.topic}",
                ),
                *_last_changes([where], journal),
                *(
                    Evidence(
                        f"{event.subject.removeprefix('client/')}: produce got {event.facts['error']}, "
                        f"{event.facts['count']} times, here or elsewhere",
                        f"journal {event.place}",
                        event.at_ms,
                    )
                    for event in [*journal.of("request-refused", api="produce", error="NOT_ENOUGH_REPLICAS")][
                        -2:
                    ]
                ),
            ),
            (
                f"start {_nodes(missing)} again: `ottla cluster describe` shows which nodes are alive",
                "producers get an error for each record that was refused: look at what they do with it",
            ),
            weight=10.8,
        )
        return


def _last_changes(places: list[TopicPartition], journal: JournalView) -> list[Evidence]:
    names = {f"{where.topic}/{where.partition}" for where in places}
    found = []
    for event in journal.of("leader-changed", "isr-changed"):
        if event.facts["at"] not in names:
            continue
        if event.kind == "isr-changed":
            text = f"in sync on {_nodes(event.facts['isr'])}, before that {_nodes(event.facts['before'])}"
        else:
            leader, before = event.facts["leader"], event.facts["before"]
            text = f"led by {'nobody' if leader < 0 else f'node {leader}'}, before that by node {before}"
        found.append(Evidence(f"{event.facts['at']} is {text}", f"journal {event.place}", event.at_ms))
    return found[-2:]


def _nodes(ids: list[int]) -> str:
    return ("node " if len(ids) == 1 else "nodes ") + (", ".join(map(str, ids)) or "none")


def _are(ids: list[int]) -> str:
    return "is" if len(ids) == 1 else "are"


def _have(places: list[TopicPartition]) -> str:
    return "has" if len(places) == 1 else "have"
