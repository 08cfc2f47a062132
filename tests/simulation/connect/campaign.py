"""Connectors through failures of every step, while workers and tasks come and go:
`make sim WHAT=connect TIMES=50`.

A source with several tasks writes to a topic, and sinks read it: rows of a table, files, requests. Whatever
fails, the topic has each record of the source once and in order. The table and the files have each record
once, the requests at least once. What cannot be read is among the dead letters.
"""

import argparse
import asyncio
import json
import logging
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from tests.simulation.connect.bugs import BUGS
from tests.simulation.connect.faulty import PARTITIONS, Faults, Shelves, Web, plant
from tests.simulation.connect.files import Session
from tests.simulation.connect.world import RunningWorker, Site, until
from tests.simulation.planting import planted

from ottla.connect.connectors.spark import sink as spark_sink

NAMES: Final = ("a", "b", "c", "d", "e")
SINKS: Final = ("rows", "files", "web")
_EVENTS_MAX: Final = 3_000_000
_QUIET_S: Final = 600
_CONVERTER: Final = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}


class Campaign:
    """One seed."""

    def __init__(self, seed: int, directory: Path, rounds: int) -> None:
        self.random = Random(f"connectors {seed}")
        self.faults = Faults(self.random)
        self.shelves = Shelves(NAMES)
        self.web = Web(self.faults)
        self._directory = directory
        self._rounds = rounds
        self._site = Site(seed, _EVENTS_MAX)
        self._bad: list[str] = []
        self._turn = 0
        self._workers: dict[int, tuple[AsyncExitStack, RunningWorker]] = {}
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        """Let it happen, and check what is there at the end."""
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, self.faults, self.shelves, self.web)
            patch.setattr(spark_sink, "shared_session", lambda config: Session())
            self._site.run(self._story, within_ms=3_600_000)

    async def _story(self, site: Site) -> None:
        async with site.admin() as admin:
            await admin.topics.create("t", partitions=PARTITIONS, replication_factor=1)
        await self._start_worker()
        await self._configure_source()
        for name in SINKS:
            await self._configure_sink(name)
        steps: list[Callable[[], Awaitable[None]]] = [
            self._fill,
            self._fill,
            self._spoil,
            self._configure_source,
            self._configure_source,
            lambda: self._configure_sink(self.random.choice(SINKS)),
            self._pause,
            self._restart,
            self._start_worker,
            self._stop_worker,
        ]
        for _ in range(self._rounds):
            await self.random.choice(steps)()
            await asyncio.sleep(self.random.choice((0.1, 1, 3)))
        self.faults.end()
        await self._fill()
        await self._configure_source()
        await self._check()
        while self._workers:
            await self._stop_worker(keep=0)

    # What happens

    async def _fill(self) -> None:
        for name in NAMES:
            self.shelves.counts[name] += self.random.randrange(12)

    async def _spoil(self) -> None:
        text = f"no JSON {len(self._bad)}"
        self._bad.append(text)
        await self._site.produce("t", text.encode(), partition=self.random.randrange(PARTITIONS))

    async def _configure_source(self) -> None:
        self._turn += 1
        await self._configure(
            "source",
            {
                "connector.class": "sim.ShelvesConnector",
                "names": ",".join(NAMES),
                "turn": str(self._turn),
                "topic": "t",
                "tasks.max": str(self.random.randrange(1, 4)),
                **_CONVERTER,
            },
        )

    async def _configure_sink(self, name: str) -> None:
        targets = {
            "rows": {
                "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
                "connection.url": f"jdbc:sqlite:{self._directory / 'rows.db'}",
                "auto.create": "true",
            },
            "files": {
                "connector.class": "ottla.connect.SparkSinkConnector",
                "spark.format": "json",
                "spark.path": str(self._directory / "files"),
            },
            "web": {"connector.class": "ottla.connect.HttpSinkConnector", "http.url": "http://web/"},
        }
        await self._configure(
            name,
            {
                **targets[name],
                "topics": "t",
                "tasks.max": str(self.random.randrange(1, 4)),
                "errors.tolerance": "all",
                "errors.deadletterqueue.topic.name": f"dead-{name}",
                # Who is slow is dropped by the group, and does not know it.
                "consumer.override.max.poll.interval.ms": "4000",
                "consumer.override.session.timeout.ms": "6000",
                **_CONVERTER,
            },
        )

    async def _configure(self, name: str, config: dict[str, str]) -> None:
        await self._ask("PUT", f"/connectors/{name}/config", config)

    async def _ask(self, method: str, path: str, body: Any = None) -> None:
        """Ask any worker, again while the group is between two leaders."""

        async def is_taken() -> bool:
            _, worker = self.random.choice(list(self._workers.values()))
            status, answer = await worker.ask(method, path, body)
            # A connector that has not said yet how it does cannot be restarted.
            assert status < 300 or status in (404, 409, 500), answer
            return status < 300

        await until(is_taken, lambda: f"{method} {path} is not taken")

    async def _pause(self) -> None:
        name = self.random.choice(("source", *SINKS))
        await self._ask("PUT", f"/connectors/{name}/pause")
        await asyncio.sleep(self.random.choice((0.1, 3)))
        await self._ask("PUT", f"/connectors/{name}/resume")

    async def _restart(self) -> None:
        name = self.random.choice(("source", *SINKS))
        await self._ask("POST", f"/connectors/{name}/restart?includeTasks=true")

    async def _start_worker(self) -> None:
        port = next(port for port in range(8083, 8090) if port not in self._workers)
        if len(self._workers) < 3:
            stack = AsyncExitStack()
            self._workers[port] = stack, await stack.enter_async_context(self._site.worker(port))

    async def _stop_worker(self, keep: int = 1) -> None:
        if len(self._workers) > keep:
            stack, _ = self._workers.pop(self.random.choice(list(self._workers)))
            await stack.aclose()

    # What must be there

    async def _check(self) -> None:
        wanted = Counter(
            (name, number) for name, count in self.shelves.counts.items() for number in range(count)
        )

        async def has_all(found: Callable[[], Any], what: str) -> None:
            async def is_there() -> bool:
                return not wanted - Counter(await found())

            await until(is_there, lambda: f"{what} are missing", within_s=_QUIET_S, pause_s=1)

        async def topic() -> list[tuple[str, int]]:
            return shelf_rows(await self._site.values("t", *range(PARTITIONS)))

        async def web() -> list[tuple[str, int]]:
            return [(item["shelf"], item["n"]) for item in map(json.loads, self.web.bodies)]

        async def rows() -> list[tuple[str, int]]:
            return await asyncio.to_thread(self._rows)

        async def files() -> list[tuple[str, int]]:
            return await asyncio.to_thread(self._files)

        await has_all(topic, "records of the source")
        for what, find in (("rows", rows), ("files", files), ("requests", web)):
            await has_all(find, what)
        in_topic = await topic()
        for name, count in self.shelves.counts.items():
            found = [number for shelf, number in in_topic if shelf == name]
            assert found == list(range(count)), f"shelf {name} is in the topic as {found}"
        for what, find in (("rows", rows), ("files", files)):
            twice = Counter(await find()) - wanted
            assert not twice, f"{what} are there more than once: {twice}"
        for name in SINKS:
            letters = set(await self._site.values(f"dead-{name}"))
            missing = set(self._bad) - letters
            assert not missing, f"the dead letters of {name} lack {missing}"
            assert letters <= set(self._bad), f"the dead letters of {name} have {letters - set(self._bad)}"
        self.done.update(records=len(in_topic), letters=len(self._bad), **self.faults.met)

    def _rows(self) -> list[tuple[str, int]]:
        connection = sqlite3.connect(self._directory / "rows.db")
        try:
            return connection.execute("SELECT shelf, n FROM t").fetchall()
        except sqlite3.OperationalError:
            return []
        finally:
            connection.close()

    def _files(self) -> list[tuple[str, int]]:
        paths = (self._directory / "files").glob("ottla_batch=*/part-*")
        return [(row["shelf"], row["n"]) for path in paths for row in json.loads(path.read_text())]


def shelf_rows(texts: list[str]) -> list[tuple[str, int]]:
    """Return the records of the source among those of its topic."""
    payloads = [json.loads(text)["payload"] for text in texts if not text.startswith("no JSON")]
    return [(payload["shelf"], payload["n"]) for payload in payloads]


def run_seed(seed: int, rounds: int = 30) -> Counter[str]:
    """Run a seed. Returns what was met."""
    with tempfile.TemporaryDirectory() as directory:
        campaign = Campaign(seed, Path(directory), rounds)
        campaign.run()
        return campaign.done


def find_bug(name: str, seeds_max: int, rounds: int = 30) -> int | None:
    """Return the first seed that finds a planted bug, and that is fine without it."""
    return next((seed for seed in range(seeds_max) if _is_found(name, seed, rounds)), None)


def _is_found(name: str, seed: int, rounds: int) -> bool:
    try:
        with planted(BUGS[name]):
            run_seed(seed, rounds)
    # Whatever it breaks.
    except Exception:
        run_seed(seed, rounds)
        return True
    return False


def _find_all_bugs(seeds_max: int, rounds: int) -> int:
    """Plant every bug and print which seed finds it. Returns how many are not found."""
    missed = 0
    for name, bug in BUGS.items():
        seed = find_bug(name, seeds_max, rounds)
        missed += seed is None
        result = f"not within {seeds_max} seeds" if seed is None else f"seed {seed}"
        print(f"{name:34} {result:26} {bug.what}", flush=True)
    print(f"{len(BUGS) - missed} of {len(BUGS)} planted bugs were found")
    return missed


def main() -> int:
    """Run many seeds, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.connect.campaign", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--all-bugs", action="store_true", help="plant every bug, one after the other")
    parser.add_argument("--bug-seeds", type=int, default=20, help="how many seeds may look for each")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.all_bugs:
        return int(_find_all_bugs(options.bug_seeds, options.rounds) > 0)
    met: Counter[str] = Counter()
    failed = []
    for seed in range(options.first, options.first + options.seeds):
        try:
            met += run_seed(seed, options.rounds)
        except Exception as error:
            failed.append(seed)
            print(f"seed {seed}: {error!r}\n  make sim WHAT=connect SEED={seed} TIMES=1", flush=True)
    print(f"{options.seeds} seeds met {dict(met.most_common())}; failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
