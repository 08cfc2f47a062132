"""The payments demo: a node, a stream of payments, three pipelines, a live view, and a reckoning.

    python examples/payments/demo.py --seconds 60 --rate 2000

It keeps everything in a directory of its own, which is removed at the end. The reckoning at the end is not
taken from the pipelines: every payment that was sent is judged again in plain Python.
"""

import argparse
import asyncio
import json
import math
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from payments import CUSTOMERS, Memory, Payment, customer_name, judge, make_payments  # noqa: E402

from ottla.client.admin import Admin  # noqa: E402
from ottla.client.fetching import IsolationLevel, fetch_once, next_offset, visible_batches  # noqa: E402
from ottla.client.list_offsets import LATEST, list_offsets  # noqa: E402
from ottla.client.producer import Producer  # noqa: E402
from ottla.model.ids import TopicPartition  # noqa: E402
from ottla.pipelines.link import Link  # noqa: E402
from ottla.pipelines.status import RUNNING, QueryStatus, read_statuses  # noqa: E402
from ottla.records.batch_records import iter_batch_records  # noqa: E402

SEED = 11
PARTITIONS = 2
# For a minute Java need not compile well, but soon: its first batches are done in half the time.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
INPUTS = {"clean": "payments", "fraud": "payments-clean", "revenue": "payments-clean"}


def label(lag: int) -> str:
    """Say in a word how far behind somebody is."""
    for bound, word in ((100, "normal"), (1_000, "caution"), (10_000, "warning")):
        if lag < bound:
            return word
    return "critical"


class Feeder(threading.Thread):
    """Sends payments at an even rate until it is told to stop."""

    def __init__(self, bootstrap: str, per_second: int, topic: str = "payments") -> None:
        super().__init__(daemon=True)
        self.sent: list[Payment] = []
        self.stopping = threading.Event()
        self.error: Exception | None = None
        self._servers = bootstrap
        self._per_second = per_second
        self._topic = topic

    def run(self) -> None:
        try:
            asyncio.run(self._feed())
        except Exception as error:
            self.error = error

    async def _feed(self) -> None:
        start_ms = time.time_ns() // 1_000_000
        started_s = time.monotonic()
        async with Producer(self._servers, linger_ms=20) as producer:
            for payment in make_payments(SEED, start_ms, self._per_second):
                if self.stopping.is_set():
                    break
                await producer.send(self._topic, payment.to_json(), key=payment.customer.encode())
                self.sent.append(payment)
                ahead_s = len(self.sent) / self._per_second - (time.monotonic() - started_s)
                if ahead_s > 0.01:
                    await asyncio.sleep(ahead_s)


async def prepare(bootstrap: str) -> None:
    """Create the topics, and tell where customers are at home."""
    async with Admin(bootstrap) as admin:
        for name in ("payments", "payments-clean", "alerts"):
            await admin.topics.create(name, partitions=PARTITIONS)
        for name in ("customers", "revenue-per-minute"):
            await admin.topics.create(name, partitions=1, configs={"cleanup.policy": "compact"})
    async with Producer(bootstrap) as producer:
        for number in range(CUSTOMERS):
            customer = customer_name(number)
            row = {"customer": customer, "country": f"country-{number % 7}"}
            await producer.send("customers", json.dumps(row).encode(), key=customer.encode())


class Reader:
    """Reads a topic as a careful reader does: nothing that is open or aborted."""

    def __init__(self, link: Link, topic: str) -> None:
        self._link = link
        self._topic = topic
        self._positions: dict[TopicPartition, int] = {}

    def read_new(self) -> list[dict[str, Any]]:
        """Return the rows that came since the last time."""
        return self._link.run(self._read_new())

    async def _read_new(self) -> list[dict[str, Any]]:
        cluster = self._link.cluster
        await cluster.refresh([self._topic])
        numbers = cluster.topology.topics[self._topic].partitions
        places = [TopicPartition(self._topic, number) for number in numbers]
        ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), IsolationLevel.READ_COMMITTED)
        rows: list[dict[str, Any]] = []
        for where in places:
            position = self._positions.get(where, 0)
            while position < ends[where].offset:
                answers = await fetch_once(
                    cluster, {where: position}, isolation=IsolationLevel.READ_COMMITTED
                )
                for batch in visible_batches(answers[where], IsolationLevel.READ_COMMITTED):
                    found = (item for item in iter_batch_records(batch) if item.offset >= position)
                    rows += [json.loads(item.value) for item in found if item.value is not None]
                position = next_offset(answers[where].records, position)
            self._positions[where] = position
        return rows


def row(status: QueryStatus, lag: int) -> str:
    """Return how a pipeline does. Its own word on its lag is as old as its last batch."""
    batch = "-" if status.batch_id < 0 else status.batch_id
    return (
        f"{status.name:<10}{status.state:<20}{batch:>6}{status.rows:>12,}{status.rows_per_second:>10,.0f}"
        f"{lag:>10,}  {label(lag)}"
    )


def show(directory: Path, link: Link, sent: int, rate: float, alerts: int, is_first: bool) -> None:
    """Draw how everything does, over what was drawn before."""
    lines = [f"payments sent   {sent:>10,}   {rate:>8,.0f}/s", f"alerts          {alerts:>10,}", ""]
    lines.append(f"{'pipeline':<10}{'state':<20}{'batch':>6}{'rows':>12}{'rows/s':>10}{'lag':>10}")
    lines += [
        row(status, lag_of(link, status.name)) for status in read_statuses(directory) if status.name in INPUTS
    ]
    lines += [""] * (7 - len(lines))
    if sys.stdout.isatty() and not is_first:
        print(f"\x1b[{len(lines)}A", end="")
    for line in lines:
        print(f"\x1b[2K{line}" if sys.stdout.isatty() else line, flush=True)


def expected_alerts(payments: list[Payment]) -> Counter[tuple[str, str]]:
    """Judge all payments in plain Python, each once."""
    memories: dict[str, Memory] = {}
    found: Counter[tuple[str, str]] = Counter()
    for payment in sorted(payments, key=lambda item: (item.ts_ms, item.id)):
        reasons = judge(memories.setdefault(payment.customer, Memory([])), payment)
        if reasons:
            found[payment.id, "+".join(reasons)] += 1
    return found


def reckon(link: Link, sent: list[Payment]) -> bool:
    """Compare what the pipelines have delivered with what was sent."""
    once = {payment.id: payment for payment in sent}
    clean = Counter(row["id"] for row in Reader(link, "payments-clean").read_new())
    alerts = Counter((row["id"], row["reasons"]) for row in Reader(link, "alerts").read_new())
    minutes = {row["minute"]: row for row in Reader(link, "revenue-per-minute").read_new()}
    expected = expected_alerts(list(once.values()))
    counted = sum(row["payments"] for row in minutes.values())
    revenue = sum(row["revenue"] for row in minutes.values())
    total = sum(payment.amount for payment in once.values())
    twice = len(sent) - len(once)
    print(f"\nsent {len(sent):,} payments, {twice:,} of them twice: {len(once):,} to account for")
    checks = {
        f"{len(clean):,} payments came through, none lost, none twice": clean == Counter(list(once)),
        f"{sum(alerts.values()):,} alerts, none missing, none twice": alerts == expected,
        f"{counted:,} payments counted in {len(minutes)} minutes": counted == len(once),
        f"revenue {revenue:,.2f} is what was paid": abs(revenue - total) < 0.01 * max(len(minutes), 1),
    }
    for sentence, is_right in checks.items():
        print(f"  {'right' if is_right else 'WRONG'}  {sentence}")
    return all(checks.values())


def lag_of(link: Link, pipeline: str) -> int:
    """Return how far a pipeline is behind the end of its topic now, as its consumer group tells."""
    places = [TopicPartition(INPUTS[pipeline], number) for number in range(PARTITIONS)]
    ends = link.run(list_offsets(link.cluster, dict.fromkeys(places, LATEST)))
    done = link.run(link.group_offsets.list(pipeline))
    return sum(ends[where].offset - (done[where].offset if where in done else 0) for where in places)


def wait_until_read(directory: Path, link: Link, timeout_s: float) -> None:
    """Wait until the pipelines have read all that is there, each after those that it reads from."""
    give_up_s = time.monotonic() + timeout_s
    pending = list(INPUTS)
    while pending and time.monotonic() < give_up_s:
        if lag_of(link, pending[0]) == 0:
            pending.pop(0)
        else:
            time.sleep(0.5)
    if pending:
        print(f"{pending[0]} has not read everything: {read_statuses(directory)}")


def run_demo(root: Path, seconds: int, rate: int) -> bool:
    """Run the demo in a directory. Returns whether the reckoning came out right."""
    ottla = str(Path(sys.executable).with_name("ottla"))
    node = subprocess.Popen(
        [ottla, "up", "--port", "0", "--data", str(root / "node"), "--log-level", "warning"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    runner: subprocess.Popen[bytes] | None = None
    try:
        assert node.stdout is not None
        bootstrap = node.stdout.readline().removeprefix("ready ").strip()
        print(f"a node runs at {bootstrap}; Spark takes some seconds to start")
        asyncio.run(prepare(bootstrap))
        with (root / "pipelines.log").open("wb") as log:
            runner = subprocess.Popen(
                [ottla, "pipeline", "run", str(HERE / "pipelines.py"), "--bootstrap", bootstrap,
                 "--directory", str(root / "pipelines"), "--conf", "spark.sql.shuffle.partitions=2",
                 "--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"],
                stdout=log, stderr=log,
            )  # fmt: skip
        _wait_for_pipelines(root, runner)
        feeder = Feeder(bootstrap, rate)
        feeder.start()
        link = Link({"bootstrap.servers": bootstrap})
        _watch(root, link, feeder, runner, seconds)
        feeder.stopping.set()
        feeder.join()
        if feeder.error is not None:
            raise feeder.error
        print("\nno more payments: waiting until all are processed")
        wait_until_read(root / "pipelines", link, 300)
        runner.send_signal(signal.SIGTERM)
        runner.wait(120)
        is_right = reckon(link, feeder.sent)
        link.close()
        return is_right
    finally:
        for process in (runner, node):
            if process is not None:
                _end(process)


def _end(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for_pipelines(root: Path, runner: "subprocess.Popen[bytes]") -> None:
    """Wait until all pipelines run: before that there is nothing to see."""
    while not {*INPUTS} <= {item.name for item in read_statuses(root / "pipelines") if item.state == RUNNING}:
        _check_runner(root, runner)
        time.sleep(0.2)


def _check_runner(root: Path, runner: "subprocess.Popen[bytes]") -> None:
    if runner.poll() is not None:
        raise SystemExit(f"the pipelines have ended: {(root / 'pipelines.log').read_text()[-2000:]}")


def _all_have_done_a_batch(root: Path) -> bool:
    return {*INPUTS} <= {item.name for item in read_statuses(root / "pipelines") if item.batch_id >= 0}


def _watch(root: Path, link: Link, feeder: Feeder, runner: "subprocess.Popen[bytes]", seconds: int) -> None:
    """Show how everything does, for so many seconds from when all pipelines have done a batch."""
    before, ends_at_s = 0, math.inf
    reader, alerts, is_first = Reader(link, "alerts"), 0, True
    while time.monotonic() < ends_at_s:
        time.sleep(1)
        if ends_at_s == math.inf and _all_have_done_a_batch(root):
            ends_at_s = time.monotonic() + seconds
        _check_runner(root, runner)
        sent = len(feeder.sent)
        alerts += len(reader.read_new())
        show(root / "pipelines", link, sent, sent - before, alerts, is_first)
        before, is_first = sent, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=2000)
    arguments = parser.parse_args()
    # Whoever ends the demo ends what it has started as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    root = Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    try:
        is_right = run_demo(root, arguments.seconds, arguments.rate)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
