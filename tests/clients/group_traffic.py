"""Traffic through a group, and the judgement of what its members did with it.

Records are produced all the time while members come, go and are killed. Afterwards every record that was
acknowledged must have been processed (none skipped), and nobody may have begun before what was committed
(what is processed twice lies in the uncommitted range).
"""

import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

START_TIMEOUT_S = 180
DRAIN_TIMEOUT_S = 240


class Note(NamedTuple):
    """A line of a member's file."""

    at_ns: int
    what: str
    partition: int
    offset: int
    member: str


class Traffic:
    """A topic that is written to, and the members of one group that read it."""

    def __init__(self, bootstrap: str, topic: str, directory: Path, partitions: int = 4) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = f"{topic}-group"
        self.acknowledged: dict[int, int] = defaultdict(int)
        """The end of each partition, as far as its producer was told."""
        self._directory = directory
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._names = 0
        self._is_stopped = threading.Event()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            made.result(30)
        self.partitions = partitions

    # Producing

    @contextmanager
    def flowing(self, records_per_second: int = 300) -> Iterator[None]:
        """Produce while the block runs."""
        thread = threading.Thread(target=self._produce, args=(records_per_second,))
        thread.start()
        try:
            yield
        finally:
            self._is_stopped.set()
            thread.join()

    def _produce(self, records_per_second: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "enable.idempotence": True})

        def delivered(error: object, message: object) -> None:
            if error is None:
                partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]
                self.acknowledged[partition] = max(self.acknowledged[partition], offset + 1)

        number = 0
        while not self._is_stopped.wait(0.05):
            for _ in range(records_per_second // 20):
                producer.produce(
                    self.topic, b"%d" % number, partition=number % self.partitions, on_delivery=delivered
                )
                number += 1
            producer.poll(0)
        assert producer.flush(60) == 0, "not everything was written"

    # Members

    def start_member(self, **settings: str) -> str:
        """Start a member, and return its name."""
        self._names += 1
        name = f"member-{self._names}"
        arguments = [f"{key.replace('_', '.')}={value}" for key, value in settings.items()]
        self._workers[name] = subprocess.Popen(
            [
                sys.executable, "-m", "tests.clients.group_worker",
                self.bootstrap, self.topic, self.group, str(self._path(name)), *arguments,
            ]
        )  # fmt: skip
        return name

    def stop_member(self, name: str) -> None:
        """Let a member leave as it should."""
        self._end(name, signal.SIGTERM)

    def kill_member(self, name: str) -> None:
        """End a member without a warning."""
        self._end(name, signal.SIGKILL)

    def stop_all(self) -> None:
        for name in list(self._workers):
            self.stop_member(name)

    def kill_all(self) -> None:
        """Make sure that nothing is left running, whatever happened."""
        self._is_stopped.set()
        for name in list(self._workers):
            self.kill_member(name)

    def _end(self, name: str, by: signal.Signals) -> None:
        process = self._workers.pop(name)
        process.send_signal(by)
        process.wait(60)

    def _path(self, name: str) -> Path:
        return self._directory / f"{self.topic}-{name}.txt"

    # What they did

    def notes(self, name: str | None = None) -> list[Note]:
        """Return what members wrote down, in order of time."""
        names = [name] if name else [f"member-{number + 1}" for number in range(self._names)]
        notes = []
        for one in names:
            path = self._path(one)
            for line in path.read_text().splitlines() if path.exists() else ():
                fields = line.split()
                # A member that is killed may leave half a line.
                if len(fields) == 4:
                    notes.append(Note(int(fields[0]), fields[1], int(fields[2]), int(fields[3]), one))
        return sorted(notes)

    def wait_for_work(self, name: str) -> None:
        """Wait until a member has processed something since now."""
        before = len([note for note in self.notes(name) if note.what == "processed"])
        self._wait(
            lambda: len([note for note in self.notes(name) if note.what == "processed"]) > before,
            START_TIMEOUT_S,
            f"{name} does nothing",
        )

    def drain(self) -> None:
        """Wait until everything that was produced is processed."""
        self._wait(lambda: not self.missing(), DRAIN_TIMEOUT_S, "not everything was processed")

    def _wait(self, is_done: object, timeout_s: float, failure: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_done():  # type: ignore[operator]
            assert time.monotonic() < deadline, f"{failure}: {dict(self.missing())} missing"
            time.sleep(0.1)

    def missing(self) -> dict[int, list[int]]:
        """Return acknowledged records that nobody has processed, by partition."""
        processed: dict[int, set[int]] = defaultdict(set)
        for note in self.notes():
            if note.what == "processed":
                processed[note.partition].add(note.offset)
        missing = {
            partition: [offset for offset in range(end) if offset not in processed[partition]]
            for partition, end in self.acknowledged.items()
        }
        return {partition: offsets for partition, offsets in missing.items() if offsets}

    def judge(self) -> int:
        """Check what was promised. Returns how many records were processed more than once."""
        assert sum(self.acknowledged.values()) > 100, "there was traffic"
        assert not self.missing()
        committed: dict[int, int] = defaultdict(int)
        seen: set[tuple[int, int]] = set()
        repeated = 0
        for note in self.notes():
            key = (note.partition, note.offset)
            if note.what == "committed":
                committed[note.partition] = max(committed[note.partition], note.offset)
            elif note.what == "assigned":
                assert note.offset >= committed[note.partition], (
                    f"{note.member} begins partition {note.partition} at {note.offset}, "
                    f"but {committed[note.partition]} was committed"
                )
            elif note.what == "processed":
                repeated += key in seen
                seen.add(key)
        return repeated
