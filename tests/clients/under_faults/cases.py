"""The faults, each as a story that any client can play. A case returns what was seen, in a few words."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from tests.clients.under_faults.clients import Client
from tests.clients.under_faults.gate import Gate, Place

from ottla.client.admin import Admin
from ottla.testing.node import ThreadNode
from ottla.wire.apis import ApiKey

RECORDS: Final = 3_000
_PRODUCE: Final = int(ApiKey.PRODUCE)
_END_TXN: Final = int(ApiKey.END_TXN)
_BURST: Final = 50
PRODUCER: Final = {
    "enable.idempotence": "true",
    "linger.ms": "1",
    "request.timeout.ms": "2000",
    "retry.backoff.ms": "50",
    "metadata.max.age.ms": "2000",
}
CONSUMER: Final = {
    "group.id": "g",
    "auto.offset.reset": "earliest",
    "metadata.max.age.ms": "2000",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
}


class Site:
    """A node, and the way to it."""

    def __init__(self, node: ThreadNode, gate: Gate) -> None:
        self.node = node
        self.gate = gate
        self._topics = 0

    def settings(self, base: dict[str, str], **changed: str) -> dict[str, str]:
        """Return settings of a client that goes through the gate."""
        given = {name.replace("_", "."): value for name, value in changed.items()}
        return {"bootstrap.servers": self.gate.address, **base, **given}

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """Make a topic."""
        self._topics += 1
        name = f"t{self._topics}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.node.create_topic(name, partitions, named)
        return name

    def written(self, topic: str) -> list[Any]:
        """Return what committed readers see."""
        return self.node.records(topic)

    def administer(self, call: Callable[[Admin], object]) -> object:
        """Do something as an administrator, not through the gate."""

        async def work() -> object:
            async with Admin(self.node.bootstrap) as admin:
                return await call(admin)  # type: ignore[misc]  # each of them is a coroutine

        return asyncio.run(work())


def _tally(site: Site, topic: str, client: Client) -> str:
    """Compare what was acknowledged with what is there."""
    outcomes = client.outcomes()
    found = site.written(topic)
    values = [(record.value or b"").decode() for record in found]
    by_partition: dict[int, list[str]] = {}
    for record in found:
        by_partition.setdefault(record.partition, []).append((record.value or b"").decode())
    is_acknowledged = {value: outcome[:1] not in "!?" for value, outcome in outcomes.items()}
    lost = sum(value not in values for value, is_there in is_acknowledged.items() if is_there)
    twice = sum(count - 1 for count in Counter(values).values())
    jumps = sum(later < earlier for part in by_partition.values() for earlier, later in pairwise(part))
    failed = sum(outcome.startswith("!") for outcome in outcomes.values())
    said = f"{sum(is_acknowledged.values())} of {len(outcomes)} acknowledged"
    for count, what in ((lost, "lost"), (twice, "twice"), (jumps, "out of order"), (failed, "failed")):
        said += f", {count} {what}" if count else ""
    return said + ("; once, in order" if not (lost or twice or jumps) else "")


def _cut(place: Place) -> Callable[[Site, Client], str]:
    def case(site: Site, client: Client) -> str:
        topic = site.topic(partitions=3)
        client.open_producer(site.settings(PRODUCER, delivery_timeout_ms="60000"))
        site.gate.cut_each(_PRODUCE, 5, place)
        for number in range(RECORDS):
            client.send(topic, f"{number:06}", number % 3)
            if number % _BURST == 0:
                time.sleep(0.01)
        client.flush(60)
        cuts = site.gate.cuts.total()
        site.gate.cut_no_more()
        client.close_producer()
        return f"{cuts} connections cut: {_tally(site, topic, client)}"

    return case


def given_up(site: Site, client: Client) -> str:
    """No answer comes until a batch is given up. Then all is well again."""
    topic = site.topic(partitions=2)
    client.open_producer(site.settings(PRODUCER, delivery_timeout_ms="3000"))
    client.send(topic, "000000", 0)
    client.send(topic, "000001", 1)
    client.flush(20)
    site.gate.be_silent()
    for number in range(2, 40):
        client.send(topic, f"{number:06}", number % 2)
        time.sleep(0.1)
    _let_pass(3)
    site.gate.speak()
    for number in range(40, 60):
        client.send(topic, f"{number:06}", number % 2)
        time.sleep(0.05)
    is_done = client.flush(30)
    client.close_producer()
    return _tally(site, topic, client) + ("" if is_done else "; flush did not end")


def away(site: Site, client: Client) -> str:
    """The only broker is not there for six seconds."""
    topic = site.topic()
    client.open_producer(site.settings(PRODUCER, delivery_timeout_ms="60000", max_block_ms="2000"))
    client.send(topic, "000000", 0)
    client.flush(20)
    site.gate.close()
    number, refused, begin_s = 0, [], time.monotonic()
    while time.monotonic() < begin_s + 6:
        number += 1
        sending = client.send(topic, f"{number:06}", 0)
        refused += [sending.error] if sending.error else []
        time.sleep(0.2)
    site.gate.open()
    begin_s = time.monotonic()
    is_done = client.flush(60)
    took_s = time.monotonic() - begin_s
    client.close_producer()
    end = f"went on {took_s:.1f} s after it was back" if is_done else "did not go on within 60 s"
    end += f"; {len(refused)} refused meanwhile: {_short(refused[0])}" if refused else ""
    return f"{end}; {_tally(site, topic, client)}"


def full(site: Site, client: Client) -> str:
    """The buffer is full: no answers come."""
    topic = site.topic()
    client.open_producer(
        site.settings(PRODUCER, delivery_timeout_ms="20000", buffer_memory="65536", max_block_ms="2000")
    )
    client.send(topic, "!first")
    client.flush(20)
    site.gate.be_silent()
    for number in range(1_000):
        sending = client.send(topic, f"{number:06}" + "x" * 1000)
        if sending.error:
            break
    site.gate.speak()
    is_done = client.flush(30)
    after = client.send(topic, "999999")
    client.flush(30)
    client.close_producer()
    said = f"after {sending.waited_s:.1f} s: {_short(sending.error)}" if sending.error else "took 1 MB"
    what = _short(after.error) or ("" if is_done else "flush did not end")
    is_well = f"; afterwards: {what}" if what else ""
    return f"{said}{is_well}; {_tally(site, topic, client)}"


def cut_off(site: Site, client: Client) -> str:
    """A flush is given up by its caller in the middle. The producer goes on."""
    topic = site.topic()
    client.open_producer(site.settings(PRODUCER, delivery_timeout_ms="60000"))
    client.send(topic, "000000")
    client.flush(20)
    site.gate.be_silent()
    for number in range(1, 20):
        client.send(topic, f"{number:06}")
    was_done = client.flush(0.5)
    site.gate.speak()
    for number in range(20, 40):
        client.send(topic, f"{number:06}")
    is_done = client.flush(30)
    client.close_producer()
    said = "" if is_done and not was_done else f"flush said {was_done}, then {is_done}; "
    return said + _tally(site, topic, client)


def new_partition(site: Site, client: Client) -> str:
    """A partition is added; metadata is two seconds old at most."""
    topic = site.topic()
    client.open_producer(site.settings(PRODUCER, batch_size="200"))
    client.send(topic, "!first")
    client.flush(20)
    site.administer(lambda admin: admin.topics.add_partitions(topic, 8))
    begin_s = time.monotonic()
    while time.monotonic() < begin_s + 10:
        client.send(topic, f"{time.monotonic()}" + "x" * 200)
        time.sleep(0.02)
        used = {outcome.split(":")[0] for outcome in client.outcomes().values() if outcome[:1] not in "!?"}
        if len(used) > 1:
            took_s = time.monotonic() - begin_s
            client.close_producer()
            return f"used after {took_s:.1f} s"
    client.close_producer()
    return "not used within 10 s"


def made_again(site: Site, client: Client) -> str:
    """A topic is deleted and made again under a producer."""
    topic = site.topic()
    client.open_producer(site.settings(PRODUCER, delivery_timeout_ms="20000"))
    for number in range(10):
        client.send(topic, f"{number:06}", 0)
    client.flush(20)
    site.administer(lambda admin: admin.topics.delete(topic))
    site.node.create_topic(topic, 1)
    refused = 0
    for number in range(10, 60):
        refused += bool(client.send(topic, f"{number:06}", 0).error)
        time.sleep(0.1)
    client.flush(30)
    later = {value: outcome for value, outcome in client.outcomes().items() if value >= "000010"}
    client.close_producer()
    there = [(record.value or b"").decode() for record in site.written(topic)]
    good = [value for value, outcome in later.items() if outcome[:1] not in "!?"]
    lost = sum(value not in there for value in good)
    errors = Counter(_short(outcome[1:]) for outcome in later.values() if outcome.startswith("!"))
    said = f"{len(good)} of {len(later)} later ones acknowledged, {lost} of them not there"
    said += f", {len(there) - len(set(there))} twice" if len(there) > len(set(there)) else ""
    return said + "".join(f"; {count} times {what}" for what, count in errors.items())


def refused_record(site: Site, client: Client) -> str:
    """A record of a transaction is too large for its topic."""
    topic = site.topic(max_message_bytes="2000")
    client.open_producer(site.settings(PRODUCER, transactional_id=f"{client.name}-refused"))
    client.transact("init")
    client.transact("begin")
    client.send(topic, "small")
    client.flush(10)
    client.send(topic, "x" * 5000)
    committed = client.transact("commit")
    aborted = client.transact("abort")
    client.transact("begin")
    client.send(topic, "next")
    after = client.transact("commit")
    client.close_producer()
    values = [(record.value or b"").decode()[:10] for record in site.written(topic)]
    said = f"commit: {_short(committed) or 'done'}; abort: {_short(aborted) or 'done'}; next commit: "
    return said + f"{_short(after) or 'done'}; there: {', '.join(values)}"


def lost_commit(site: Site, client: Client) -> str:
    """The answer to a commit is lost."""
    topic = site.topic()
    client.open_producer(site.settings(PRODUCER, transactional_id=f"{client.name}-lost"))
    client.transact("init")
    client.transact("begin")
    client.send(topic, "once")
    client.flush(10)
    site.gate.cut_each(_END_TXN, 1, Place.BEFORE)
    committing: list[str] = []
    thread = threading.Thread(target=lambda: committing.append(client.transact("commit")))
    thread.start()
    deadline_s = time.monotonic() + 20
    while not site.gate.cuts[_END_TXN] and time.monotonic() < deadline_s:
        time.sleep(0.01)
    site.gate.cut_no_more()
    thread.join()
    again = client.transact("commit") if committing[0] else ""
    client.transact("begin")
    client.send(topic, "next")
    after = client.transact("commit")
    client.close_producer()
    values = [(record.value or b"").decode() for record in site.written(topic)]
    said = f"commit: {_short(committing[0]) or 'goes on by itself'}"
    said += f"; again: {_short(again) or 'done'}" if committing[0] else ""
    return f"{said}; next: {_short(after) or 'done'}; there: {', '.join(values)}"


def closed_in_transaction(site: Site, client: Client) -> str:
    """A producer is closed with its transaction open."""
    topic = site.topic()
    name = f"{client.name}-closed"
    client.open_producer(site.settings(PRODUCER, transactional_id=name, transaction_timeout_ms="20000"))
    client.transact("init")
    client.transact("begin")
    client.send(topic, "half")
    client.flush(10)
    said = client.close_producer()
    _let_pass(2)
    found = site.administer(lambda admin: admin.transactions.describe(name))
    return f"{_short(said)}; " * bool(said) + f"two seconds later: {getattr(found, 'state', found)}"


def two_polls(site: Site, client: Client) -> str:
    """Two threads poll at once."""
    topic = site.topic()
    site.node.produce(topic, *(b"%d" % number for number in range(100)))
    client.open_consumer(topic, site.settings(CONSUMER, group_id=f"{client.name}-two"))
    found = client.poll_twice()
    client.close_consumer()
    return " and ".join(sorted(_short(one) for one in found))


def late_poll(site: Site, client: Client) -> str:
    """Poll comes after max.poll.interval.ms."""
    topic = site.topic()
    site.node.produce(topic, b"0")
    settings = site.settings(
        CONSUMER,
        group_id=f"{client.name}-late",
        max_poll_interval_ms="6000",
        enable_auto_commit="false",
    )
    client.open_consumer(topic, settings)
    _until(client, 1)
    _let_pass(10)
    told, begin_s = [], time.monotonic()
    found: list[str] = []
    while not found and time.monotonic() < begin_s + 30:
        found, error = client.poll(1)
        told += [_short(error)] if error else []
    client.close_consumer()
    what = f"first {told[0]}, then " if told else ""
    return what + (f"joins again, and reads {found[0]!r} again" if found else "reads nothing within 30 s")


def consumer_of_topic_made_again(site: Site, client: Client) -> str:
    """A topic is deleted and made again under a consumer. The new one has more records than were read."""
    topic = site.topic()
    site.node.produce(topic, *(b"old %d" % number for number in range(5)))
    client.open_consumer(topic, site.settings(CONSUMER, group_id=f"{client.name}-again"))
    _until(client, 5)
    site.administer(lambda admin: admin.topics.delete(topic))
    site.node.create_topic(topic, 1)
    site.node.produce(topic, *(b"new %d" % number for number in range(20)))
    found: set[str] = set()
    errors: Counter[str] = Counter()
    begin_s = time.monotonic()
    while len(found) < 20 and time.monotonic() < begin_s + 25:
        values, error = client.poll(0.5)
        found |= {value for value in values if value.startswith("new")}
        errors[_short(error)] += bool(error)
    client.close_consumer()
    said = f"{len(found)} of 20 records of the new topic"
    return said + "".join(f"; {what}" for what, count in errors.items() if count)


def cut_fetches(site: Site, client: Client) -> str:
    """Connections of a consumer are cut in the middle of answers."""
    topic = site.topic(partitions=3)
    for partition in range(3):
        values = (b"%d-%d" % (partition, number) for number in range(300))
        site.node.produce(topic, *values, partition=partition)
    site.gate.cut_each(int(ApiKey.FETCH), 3, Place.IN)
    settings = site.settings(CONSUMER, group_id=f"{client.name}-cut", max_partition_fetch_bytes="500")
    client.open_consumer(topic, settings)
    found = _until(client, 900, 60)
    cuts = site.gate.cuts[int(ApiKey.FETCH)]
    site.gate.cut_no_more()
    client.close_consumer()
    return f"{cuts} connections cut: {len(set(found))} of 900 records, {len(found) - len(set(found))} twice"


def _let_pass(seconds: float) -> None:
    """Let time pass: that is the fault."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        time.sleep(0.05)


def _until(client: Client, count: int, within_s: float = 30) -> list[str]:
    found: list[str] = []
    deadline_s = time.monotonic() + within_s
    while len(found) < count and time.monotonic() < deadline_s:
        found += client.poll(0.5)[0]
    return found


def _short(error: str) -> str:
    return error if len(error) < 120 else error[:117] + "..."


CASES: Final[dict[str, Callable[[Site, Client], str]]] = {
    "cut before each fifth answer": _cut(Place.BEFORE),
    "cut in each fifth answer": _cut(Place.IN),
    "cut after each fifth answer": _cut(Place.AFTER),
    "the only broker is away for six seconds": away,
    "no answer until batches are given up": given_up,
    "the buffer is full": full,
    "a flush is given up by its caller": cut_off,
    "a new partition, metadata of two seconds": new_partition,
    "a topic is made again under a producer": made_again,
    "a record of a transaction is too large": refused_record,
    "the answer to a commit is lost": lost_commit,
    "a producer is closed in a transaction": closed_in_transaction,
    "two polls at once": two_polls,
    "a poll comes too late": late_poll,
    "a topic is made again under a consumer": consumer_of_topic_made_again,
    "a consumer's answers are cut in the middle": cut_fetches,
}
