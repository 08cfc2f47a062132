"""The payments demo: a node, a stream of payments, three pipelines, a live view, and a reckoning.

    python examples/payments/demo.py --seconds 60 --rate 2000

It keeps everything in a directory of its own, which is removed at the end. The reckoning at the end is not
taken from the pipelines: every payment that was sent is judged again in plain Python. It also says how old
alerts were when they could be read, counted from when their payment was made.

It exits with 0 if all is right, with 1 if something is wrong, and with 2 if the pipelines did not finish.
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
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from payments import CUSTOMERS, Memory, Payment, customer_name, judge, make_payments  # noqa: E402

from ottla import Admin, Producer, TopicPartition, sync  # noqa: E402
from ottla.pipelines.status import RUNNING, QueryStatus, read_statuses  # noqa: E402

SEED = 11
PARTITIONS = 2
# For a minute Java need not compile well, but soon: its first batches are done in half the time.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
INPUTS = {"clean": "payments", "fraud": "payments-clean", "revenue": "payments-clean"}
# For so long after its first batches Java is still compiling: the ages of alerts until then are shown apart.
WARM_UP_S = 20
# How much of the payments' time a pipeline may be behind. A batch takes half a second, and the next one may
# just have begun.
LABELS = ((2.0, "normal"), (5.0, "caution"), (15.0, "warning"))
# Pipelines that have not read anything for so long will not finish.
PATIENCE_S = 120.0
LOOK_FOR_ALERTS_EVERY_S = 0.02
HEADINGS = (
    f"{'pipeline':<10}{'state':<20}{'batch':>6}{'seconds':>9}{'rows':>12}{'rows/s':>10}{'lag':>10}     behind"
)


class Verdict(Enum):
    """What a comparison comes to. The values are what is printed."""

    RIGHT = "right"
    UNFINISHED = "unfinished"
    WRONG = "WRONG"


EXIT_CODES = {Verdict.RIGHT: 0, Verdict.WRONG: 1, Verdict.UNFINISHED: 2}


def label(behind_s: float) -> str:
    """Say in a word how far behind somebody is. The same lag is much at one rate, and little at another."""
    return next((word for bound_s, word in LABELS if behind_s < bound_s), "critical")


class Feeder(threading.Thread):
    """Sends payments at an even rate until it is told to stop."""

    def __init__(self, bootstrap: str, per_second: int, topic: str = "payments") -> None:
        super().__init__(daemon=True)
        self.sent: list[Payment] = []
        self.stopping = threading.Event()
        self.error: Exception | None = None
        self._servers = bootstrap
        self.per_second = per_second
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
            for payment in make_payments(SEED, start_ms, self.per_second):
                if self.stopping.is_set():
                    break
                await producer.send(self._topic, payment.to_json(), key=payment.customer.encode())
                self.sent.append(payment)
                ahead_s = len(self.sent) / self.per_second - (time.monotonic() - started_s)
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

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = sync.Consumer(
            bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._topic = topic

    def read_new(self) -> list[dict[str, Any]]:
        """Return the rows that came since the last time."""
        consumer = self._consumer
        partitions = consumer.partitions_for(self._topic)
        if consumer.assignment() != partitions:
            consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        rows: list[dict[str, Any]] = []
        while any(consumer.position(where) < end for where, end in ends.items()):
            records = consumer.poll(timeout_ms=100)
            rows += [json.loads(record.value) for record in records if record.value is not None]
        return rows

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()


class AlertWatch(threading.Thread):
    """Reads alerts as soon as they can be read, and takes note of how old they are."""

    def __init__(self, bootstrap: str, topic: str = "alerts") -> None:
        super().__init__(daemon=True)
        self.ages_s: list[tuple[float, float]] = []
        """When the payment was made, in seconds since 1970, and how many seconds later its alert came."""
        self.stopping = threading.Event()
        self._servers = bootstrap
        self._topic = topic

    def run(self) -> None:
        reader = Reader(self._servers, self._topic)
        while not self.stopping.wait(LOOK_FOR_ALERTS_EVERY_S):
            found = reader.read_new()
            now_s = time.time()
            self.ages_s += [(alert["ts_ms"] / 1000, now_s - alert["ts_ms"] / 1000) for alert in found]
        reader.close()

    def ages(self, since_s: float = -math.inf, until_s: float = math.inf) -> list[float]:
        """Return the ages of alerts whose payments were made between two moments, the youngest first."""
        return sorted(age for made, age in self.ages_s if since_s <= made < until_s)


def quantile(values: list[float], share: float) -> float:
    """Return the value that this share of sorted values does not exceed."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


def say_ages(ages_s: list[float]) -> str:
    """Return how old alerts were, in a line."""
    if not ages_s:
        return "none yet"
    middle, most = quantile(ages_s, 0.5), quantile(ages_s, 0.99)
    return f"p50 {middle:.2f} s, p99 {most:.2f} s of {len(ages_s):,} alerts"


def report_ages(watch: AlertWatch, warm_s: float, warm_up_s: int) -> list[str]:
    """Return how old alerts were: all of them, and those from before Java was warm apart."""
    return [
        f"age of an alert, whole run: {say_ages(watch.ages())}",
        f"  until {warm_up_s} s after the first batches: {say_ages(watch.ages(until_s=warm_s))}",
        f"  from then on: {say_ages(watch.ages(since_s=warm_s))}",
    ]


def row(status: QueryStatus, lag: int, per_second: int) -> str:
    """Return how a pipeline does. Its own word on its lag is as old as its last batch."""
    batch = "-" if status.batch_id is None else status.batch_id
    took = "-" if status.batch_ms is None else f"{status.batch_ms / 1000:.1f}"
    return (
        f"{status.name:<10}{status.state:<20}{batch:>6}{took:>9}{status.rows:>12,}"
        f"{status.rows_per_second:>10,.0f}{lag:>10,}{lag / per_second:>9.1f} s  {label(lag / per_second)}"
    )


class View:
    """Draws how everything does, over what was drawn before."""

    def __init__(self, directory: Path, admin: sync.Admin, feeder: Feeder, watch: AlertWatch) -> None:
        self._directory = directory
        self._admin = admin
        self._feeder = feeder
        self._watch = watch
        self._sent = 0
        self._is_first = True

    def show(self) -> None:
        """Draw."""
        sent = len(self._feeder.sent)
        lines = [
            f"payments sent   {sent:>10,}   {sent - self._sent:>8,}/s",
            f"alerts          {len(self._watch.ages_s):>10,}",
            f"age of an alert   {say_ages(self._watch.ages())}",
            "",
            HEADINGS,
        ]
        lines += [
            row(status, lag_of(self._admin, status.name), self._feeder.per_second)
            for status in read_statuses(self._directory)
            if status.name in INPUTS
        ]
        lines += [""] * (8 - len(lines))
        if sys.stdout.isatty() and not self._is_first:
            print(f"\x1b[{len(lines)}A", end="")
        for line in lines:
            print(f"\x1b[2K{line}" if sys.stdout.isatty() else line, flush=True)
        self._sent, self._is_first = sent, False


def expected_alerts(payments: list[Payment]) -> Counter[tuple[str, str]]:
    """Judge all payments in plain Python, each once."""
    memories: dict[str, Memory] = {}
    found: Counter[tuple[str, str]] = Counter()
    for payment in sorted(payments, key=lambda item: (item.ts_ms, item.id)):
        reasons = judge(memories.setdefault(payment.customer, Memory([])), payment)
        if reasons:
            found[payment.id, "+".join(reasons)] += 1
    return found


def compare(found: Counter[Any], expected: Counter[Any], is_finished: bool) -> Verdict:
    """Hold what came out against what must come out."""
    if found == expected:
        return Verdict.RIGHT
    # Something that must not be there, or is there twice, is wrong however long one waits.
    return Verdict.WRONG if is_finished or found - expected else Verdict.UNFINISHED


def compare_sums(found: float, expected: float, tolerance: float, is_finished: bool) -> Verdict:
    """Hold a sum of what came out against that of what went in. None of its parts is negative."""
    if abs(found - expected) <= tolerance:
        return Verdict.RIGHT
    return Verdict.WRONG if is_finished or found > expected else Verdict.UNFINISHED


def read_all(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """Return all rows of a topic."""
    reader = Reader(bootstrap, topic)
    try:
        return reader.read_new()
    finally:
        reader.close()


def reckon(bootstrap: str, sent: list[Payment], is_finished: bool) -> Verdict:
    """Compare what the pipelines have delivered with what was sent."""
    once = {payment.id: payment for payment in sent}
    clean = Counter(row["id"] for row in read_all(bootstrap, "payments-clean"))
    alerts = Counter((row["id"], row["reasons"]) for row in read_all(bootstrap, "alerts"))
    minutes = {row["minute"]: row for row in read_all(bootstrap, "revenue-per-minute")}
    expected = expected_alerts(list(once.values()))
    counted = sum(row["payments"] for row in minutes.values())
    revenue = sum(row["revenue"] for row in minutes.values())
    total = sum(payment.amount for payment in once.values())
    twice = len(sent) - len(once)
    print(f"\nsent {len(sent):,} payments, {twice:,} of them twice: {len(once):,} to account for")
    cents = 0.01 * max(len(minutes), 1)
    checks = {
        f"{len(clean):,} payments came through, none lost, none twice": compare(
            clean, Counter(list(once)), is_finished
        ),
        f"{sum(alerts.values()):,} alerts, none missing, none twice": compare(alerts, expected, is_finished),
        f"{counted:,} payments counted in {len(minutes)} minutes": compare_sums(
            counted, len(once), 0, is_finished
        ),
        f"revenue {revenue:,.2f} is what was paid": compare_sums(revenue, total, cents, is_finished),
    }
    for sentence, verdict in checks.items():
        print(f"  {verdict.value}  {sentence}")
    verdicts = set(checks.values())
    return next(item for item in (Verdict.WRONG, Verdict.UNFINISHED, Verdict.RIGHT) if item in verdicts)


def lag_of(admin: sync.Admin, pipeline: str) -> int:
    """Return how far a pipeline is behind the end of its topic now, as its consumer group tells."""
    places = [TopicPartition(INPUTS[pipeline], number) for number in range(PARTITIONS)]
    ends = admin.offsets.latest(places).check()
    done = admin.group_offsets.list(pipeline)
    return sum(ends[where].offset - (done[where].offset if where in done else 0) for where in places)


def wait_until_read(
    admin: sync.Admin, progress: Callable[[], None], patience_s: float = PATIENCE_S
) -> dict[str, int]:
    """Wait until the pipelines have read everything, each after those that it reads from.

    Returns what is left: nothing, unless nothing was read for so many seconds.
    """
    last: dict[str, int] = {}
    moved_s = time.monotonic()
    while True:
        left = {name: lag_of(admin, name) for name in INPUTS}
        # In this order: once the first has read everything, nothing more comes to the others.
        if not any(left.values()) and not any(lag_of(admin, name) for name in INPUTS):
            return {}
        if left != last:
            last, moved_s = left, time.monotonic()
        if time.monotonic() - moved_s > patience_s:
            return {name: lag for name, lag in left.items() if lag}
        progress()
        time.sleep(1)


def run_demo(root: Path, seconds: int, rate: int, warm_up_s: int) -> Verdict:
    """Run the demo in a directory. Returns what the reckoning came to."""
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
                 "--directory", str(root / "pipelines"), "--conf", "spark.sql.shuffle.partitions=1",
                 "--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"],
                stdout=log, stderr=log,
            )  # fmt: skip
        _wait_for_pipelines(root, runner)
        feeder, watch = Feeder(bootstrap, rate), AlertWatch(bootstrap)
        feeder.start()
        watch.start()
        admin = sync.Admin(bootstrap)
        view = View(root / "pipelines", admin, feeder, watch)
        warm_s = _watch(root, view, runner, seconds, warm_up_s)
        feeder.stopping.set()
        feeder.join()
        if feeder.error is not None:
            raise feeder.error
        print("\nno more payments: waiting until all are processed")
        left = wait_until_read(admin, lambda: _show_drain(root, view, runner))
        watch.stopping.set()
        watch.join()
        runner.send_signal(signal.SIGTERM)
        runner.wait(120)
        if left:
            text = " and ".join(f"{name} has {lag:,} records left to read" for name, lag in left.items())
            print(f"\nnot finished: {text}, and has read nothing for {PATIENCE_S:g} s")
        verdict = reckon(bootstrap, feeder.sent, is_finished=not left)
        print("\n".join(report_ages(watch, warm_s, warm_up_s)))
        admin.close()
        return verdict
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


def _show_drain(root: Path, view: View, runner: "subprocess.Popen[bytes]") -> None:
    _check_runner(root, runner)
    view.show()


def _all_have_done_a_batch(root: Path) -> bool:
    done = {item.name for item in read_statuses(root / "pipelines") if item.batch_id is not None}
    return {*INPUTS} <= done


def _watch(root: Path, view: View, runner: "subprocess.Popen[bytes]", seconds: int, warm_up_s: int) -> float:
    """Show how everything does, for so many seconds from when all pipelines have done a batch.

    Returns from when on Java is warm, in seconds since 1970.
    """
    ends_at_s = warm_s = math.inf
    while time.monotonic() < ends_at_s:
        time.sleep(1)
        if ends_at_s == math.inf and _all_have_done_a_batch(root):
            ends_at_s = time.monotonic() + seconds
            warm_s = time.time() + warm_up_s
        _check_runner(root, runner)
        view.show()
    return warm_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--warm-up", type=int, default=WARM_UP_S)
    arguments = parser.parse_args()
    # Ending the demo ends what it has started as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    root = Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    try:
        verdict = run_demo(root, arguments.seconds, arguments.rate, arguments.warm_up)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(EXIT_CODES[verdict])


if __name__ == "__main__":
    main()
