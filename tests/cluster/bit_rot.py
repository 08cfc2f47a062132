"""Flip bits in the files of one of three nodes, again and again, while records are written.

    python -m tests.cluster.bit_rot --rounds 200 --seed 1

Each round chooses a node, a file of one of its logs, and a few bits of it. The node runs meanwhile, or is
stopped or killed and started again. Then the node has to say that the file is damaged, if it is a log, and
the file has to become what it is on the other nodes. At the end nothing that was acknowledged is lost or
there twice, and all replicas are the same bytes.

Metadata is read when a node starts, so bits of it are flipped while a node is down. It fetches the metadata
again, and votes when it has it.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mixed_cluster import ClusterNode, MixedCluster, wait_until

from ottla.quorum.raft.metadata_log import ABSTAINING_FILE

TOPIC, COMPACTED, TRANSACTIONAL = "rotten", "compacted", "transactional"
METADATA = "__cluster_metadata-0"
PARTITIONS = 3
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "log.segment.bytes": str(1 << 20),
    "log.index.interval.bytes": "512",
    "ottla.scrub.interval.ms": "300",
    "ottla.scrub.bytes.per.second": str(1 << 30),
    "ottla.journal.enable": "false",
}
KINDS = (".log", ".log", ".log", ".log", ".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint")
HOWS = ("running", "running", "running", "stopped", "killed")
BITS_MAX = 5
METADATA_SHARE = 0.3
TOLD = (" is damaged: ", "no other replica has")


class Rot:
    """A cluster whose files decay."""

    def __init__(self, root: Path, seed: int, hows: Sequence[str] = HOWS) -> None:
        self._rng = Random(seed)
        self._hows = hows
        self._cluster = MixedCluster(root, "ooo", (1, 2, 3), SETTINGS)
        self._marked: set[bytes] = set()
        self.outcome: Counter[str] = Counter()

    def run(self, rounds: int) -> None:
        """Run so many rounds, and check what is left."""
        with self._cluster as cluster:
            self._create_topics()
            load = AcknowledgedLoad(cluster.bootstrap, TOPIC, PARTITIONS)
            try:
                load.wait_for(3000)
                for number in range(rounds):
                    self._run_round(number)
                    load.wait_for(50)
                    self._write_others(number)
            except BaseException:
                load.give_up()
                raise
            load.finish()
            assert load.failures == []
            self._check(load)

    def _create_topics(self) -> None:
        cluster = self._cluster
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.create_topic(TRANSACTIONAL, 1)
        compacted = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "2000",
        }
        cluster.create_topic(COMPACTED, 1, compacted)
        for number in range(3):
            self._write_others(number)

    def _write_others(self, number: int) -> None:
        """Write to the other topics: some keys again, and one transaction."""
        bootstrap = self._cluster.bootstrap
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for key in range(20):
            producer.produce(COMPACTED, f"{number}-{key}" * 10, key=str(key))
        assert producer.flush(120) == 0
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "rot", "log_level": 0})
        producer.init_transactions(120)
        producer.begin_transaction()
        value = f"transaction {number}".encode()
        producer.produce(TRANSACTIONAL, value)
        if number % 3:
            producer.commit_transaction(120)
            self._marked.add(value)
        else:
            producer.abort_transaction(120)

    # One round

    def _run_round(self, number: int) -> None:
        rng, cluster = self._rng, self._cluster
        node, how = rng.choice(cluster.nodes), rng.choice(self._hows)
        if how == "stopped":
            node.stop()
        elif how == "killed":
            node.kill()
        path = self._choose_file(node, how)
        lines_before = self._lines_of(node)
        flipped = flip_bits(path, rng)
        print(f"{number}: node {node.number} {how}: {path.parent.name}/{path.name} {flipped}", flush=True)
        if how != "running":
            node.start()
            cluster.wait_for_brokers(3)
            for topic in (TOPIC, COMPACTED, TRANSACTIONAL):
                cluster.wait_for_in_sync(topic, 3)
        is_log = path.suffix == ".log"
        if is_log:
            wait(lambda: self._is_told(node, lines_before, path), f"node {node.number} tells of {path}")
            if not path.parent.name.startswith((COMPACTED, "__")):
                wait(lambda: self._is_healed(node, path), f"{path} is healed")
        is_metadata = path.parent.name == METADATA
        if is_metadata:
            abstaining = path.parent / ABSTAINING_FILE
            wait(lambda: not abstaining.exists(), f"node {node.number} votes again")
        self.outcome[f"{how} {METADATA if is_metadata else path.suffix or path.name}"] += 1

    def _choose_file(self, node: ClusterNode, how: str) -> Path:
        if how != "running" and self._rng.random() < METADATA_SHARE:
            return self._rng.choice(sorted(node.data_directory.glob(f"{METADATA}/*.log")))
        while True:
            kind = self._rng.choice(KINDS)
            found = [
                path
                for path in sorted(node.data_directory.glob(f"*-[0-9]*/*{kind}"))
                if path.parent.name != METADATA and path.stat().st_size > 200
            ]
            if found:
                return self._rng.choice(found)

    def _lines_of(self, node: ClusterNode) -> int:
        return len(node.log_path.read_text().splitlines())

    def _is_told(self, node: ClusterNode, since: int, path: Path) -> bool:
        """Say whether a node has told of damage in a log, or compaction has taken it away."""
        if not path.exists():
            return True
        lines = node.log_path.read_text().splitlines()[since:]
        return any(path.parent.name in line and any(words in line for words in TOLD) for line in lines)

    def _is_healed(self, node: ClusterNode, path: Path) -> bool:
        """Say whether a segment is what it is on the other nodes, as far as all of them have it."""
        contents = []
        for one in self._cluster.nodes:
            there = one.data_directory / path.parent.name / path.name
            if not there.exists():
                return True
            contents.append(there.read_bytes().rstrip(b"\0"))
        size = min(map(len, contents))
        return len({content[:size] for content in contents}) == 1

    # At the end

    def _check(self, load: AcknowledgedLoad) -> None:
        cluster = self._cluster
        for topic in (TOPIC, TRANSACTIONAL):
            cluster.wait_for_in_sync(topic, 3)
            wait(lambda topic=topic: cluster.differences(topic) == [], f"replicas of {topic} are equal")  # type: ignore[misc]
        found = read_all(cluster.bootstrap, TOPIC, PARTITIONS)
        load.check_found(found)
        assert len(set(found.values())) == len(found), "none twice"
        committed = set(read_all(cluster.bootstrap, TRANSACTIONAL, 1).values())
        assert committed == self._marked
        for node in cluster.nodes:
            assert "they are lost" not in node.log_path.read_text()


def wait(is_done: Callable[[], bool], what: str) -> None:
    """Wait for a condition, for longer than a busy machine takes."""
    wait_until(is_done, what, 120)


def flip_bits(path: Path, rng: Random) -> list[int]:
    """Flip a few bits of a file, and return where."""
    size = path.stat().st_size
    content = path.read_bytes()
    end = max(1, len(content.rstrip(b"\0")))
    # Bits that are near to each other, as on a bad sector.
    start = rng.randrange(min(size, end))
    places = sorted({min(end - 1, start + rng.randrange(64)) for _ in range(rng.randint(1, BITS_MAX))})
    with path.open("r+b") as file:
        for place in places:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    return places


def read_all(bootstrap: str, topic: str, partitions: int) -> dict[tuple[int, int], bytes]:
    """Read all committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    found: dict[tuple[int, int], bytes] = {}
    for number in range(partitions):
        consumer.assign([TopicPartition(topic, number, 0)])
        while True:
            message = consumer.poll(60)
            assert message is not None, "there is an end"
            if message.error() is not None:
                break
            offset, value = message.offset(), message.value()
            assert offset is not None
            assert value is not None
            found[number, offset] = value
    consumer.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="ottla-rot-"))
    rot = Rot(root, arguments.seed)
    try:
        rot.run(arguments.rounds)
    except BaseException:
        print(f"the files of the nodes are in {root}")
        raise
    shutil.rmtree(root, ignore_errors=True)
    words = ", ".join(f"{count} {what}" for what, count in sorted(rot.outcome.items()))
    took = time.monotonic() - started
    print(f"{arguments.rounds} rounds in {took:.0f} s, nothing lost, all replicas equal: {words}")


if __name__ == "__main__":
    main()
