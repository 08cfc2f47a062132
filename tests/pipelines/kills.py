"""Kills drivers, whole trees of processes and the broker while pipelines run, and counts what came out.

    python -m tests.pipelines.kills --kills 20 --records 2000000

Two pipelines read the same topic: one copies it in append mode, one counts by key in update mode. Each kill
waits until the output has grown, so that it falls into work, then some random moment longer. The three kinds
of victims take turns, in an order that the seed decides. At the end a careful reader must see each record
once, and the last count of each key must be right.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.pipelines.effort import QUICK_JAVA
from tests.pipelines.records import committed, create_topic, produce
from tests.support.ottla_node import OttlaNode, ottla_command

KEYS = 50
PARTITIONS = 2
VICTIMS = ("driver", "tree", "broker")
PIPELINES = """
from pyspark.sql import functions as F
from ottla.pipelines import pipeline, topic

LIMIT = {{"maxOffsetsPerTrigger": "{per_batch}"}}

@pipeline("copied", to="copies")
def copied(source=topic("source", options=LIMIT)):
    return source.select("key", "value")

@pipeline("counted", to="counts", mode="update", key="key")
def counted(source=topic("source", options=LIMIT)):
    return source.groupBy("key").agg(F.count("*").alias("records"))
"""


class Campaign:
    """One node, one topic, and a runner that is killed again and again."""

    def __init__(self, root: Path, records: int, kills: int, seed: int) -> None:
        self.root = root
        self.records = records
        self.kills = kills
        self.rng = random.Random(seed)
        self.node = OttlaNode(root / "node")
        self.log = root / "runner.log"
        self.runner: subprocess.Popen[bytes] | None = None

    def run(self) -> list[str]:
        """Run the campaign. Returns what is wrong: nothing, if all is well."""
        self.node.start()
        try:
            self._fill()
            self._start()
            victims = self.rng.sample(VICTIMS, len(VICTIMS))
            for number in range(self.kills):
                if not self._wait_for_growth():
                    print(f"all was delivered after {number} kills", flush=True)
                    break
                time.sleep(self.rng.random() * 2)
                victim = victims[number % len(victims)]
                print(f"kill {number + 1}: {victim}, {self._delivered():,} offsets delivered", flush=True)
                self._kill(victim)
            self._finish()
            return list(self._faults())
        finally:
            if self.runner is not None:
                self._end_tree(self.runner)
            if self.node.process is not None:
                self.node.kill()

    def _fill(self) -> None:
        for topic in ("source", "copies", "counts"):
            create_topic(self.node.bootstrap, topic, PARTITIONS)
        produce(
            self.node.bootstrap,
            "source",
            ((b"k%d" % (number % KEYS), b"%d" % number) for number in range(self.records)),
        )
        per_batch = max(self.records // (self.kills * 3), 1000)
        (self.root / "kill_pipelines.py").write_text(PIPELINES.format(per_batch=per_batch))

    def _start(self, *more: str) -> None:
        command = ottla_command(
            "pipeline", "run", str(self.root / "kill_pipelines.py"), "--bootstrap", self.node.bootstrap,
            "--directory", str(self.root / "pipelines"), "--spark", "local[2]",
            "--conf", "spark.sql.shuffle.partitions=2",
            "--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}", *more,
        )  # fmt: skip
        with self.log.open("ab") as log:
            # A session of its own, so that all it starts can be ended together.
            self.runner = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _kill(self, victim: str) -> None:
        assert self.runner is not None
        if victim == "broker":
            self.node.kill()
            self.node.start()
            return
        if victim == "driver":
            # Only the process at the top: Java and the workers find out by themselves.
            self.runner.kill()
            self.runner.wait()
        else:
            self._end_tree(self.runner)
        self._start()

    def _end_tree(self, runner: "subprocess.Popen[bytes]") -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(runner.pid, signal.SIGKILL)
        runner.wait()

    def _delivered(self) -> int:
        from confluent_kafka import Consumer
        from tests.support.watermarks import watermarks

        consumer = Consumer({"bootstrap.servers": self.node.bootstrap, "group.id": "watcher"})
        try:
            return sum(
                watermarks(consumer, topic, number)[1]
                for topic in ("copies", "counts")
                for number in range(PARTITIONS)
            )
        finally:
            consumer.close()

    def _wait_for_growth(self) -> bool:
        before = self._delivered()
        give_up_s = time.monotonic() + 300
        while self._delivered() == before:
            if before >= self.records:
                return False
            if time.monotonic() > give_up_s:
                raise AssertionError(f"nothing grows: {self.log.read_text()[-3000:]}")
            time.sleep(0.2)
        return True

    def _finish(self) -> None:
        """Let the pipelines come to the end, undisturbed."""
        assert self.runner is not None
        self._end_tree(self.runner)
        self._start("--available-now")
        assert self.runner.wait(1800) == 0, self.log.read_text()[-3000:]

    def _faults(self) -> Iterable[str]:
        copies = Counter(int(message.value()) for message in committed(self.node.bootstrap, "copies"))
        missing = self.records - len(copies)
        extra = sum(copies.values()) - len(copies)
        print(
            f"{len(copies):,} of {self.records:,} records, {missing:,} missing, {extra:,} twice", flush=True
        )
        if missing:
            yield f"{missing} records are missing"
        if extra:
            yield f"{extra} records are there twice"
        yield from self._faults_of_counts()

    def _faults_of_counts(self) -> Iterable[str]:
        seen: Counter[tuple[bytes, int]] = Counter()
        last: dict[bytes, int] = {}
        for message in committed(self.node.bootstrap, "counts"):
            count = json.loads(message.value())["records"]
            seen[message.key(), count] += 1
            if count <= last.get(message.key(), 0):
                yield f"the count of {message.key()!r} went from {last[message.key()]} to {count}"
            last[message.key()] = count
        twice = sum(number > 1 for number in seen.values())
        print(f"{sum(seen.values()):,} updates of {len(last)} keys, {twice:,} twice", flush=True)
        if twice:
            yield f"{twice} updates are there twice"
        for key in range(KEYS):
            expected = len(range(key, self.records, KEYS))
            if last.get(b"k%d" % key) != expected:
                yield f"the last count of k{key} is {last.get(b'k%d' % key)} instead of {expected}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill pipelines and look for what was lost or doubled.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ottla-kills-") as root:
        faults = Campaign(Path(root), arguments.records, arguments.kills, arguments.seed).run()
    for fault in faults[:20]:
        print(f"WRONG: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
