"""What a connector has written is there once, whatever fails: single stories, and some seeds of all."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from tests.simulation.connect.bugs import BUGS
from tests.simulation.connect.campaign import find_bug, run_seed, shelf_rows
from tests.simulation.connect.faulty import Faults, Shelves, plant
from tests.simulation.connect.world import Site, until
from tests.simulation.planting import planted

from ottla.client.producer import Producer
from ottla.connect.connectors.sql import table_sink
from ottla.connect.connectors.sql.database import Database
from ottla.connect.errors import ConnectError

_SOURCE = "sim.ShelvesConnector"
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture
def shelves(monkeypatch: pytest.MonkeyPatch) -> Shelves:
    """Shelves of a world where nothing fails but what a test lets fail."""
    made = Shelves(("a", "b", "c", "d"))
    plant(monkeypatch, Faults(Random(0), failing=0, slow=0), made, _Web())
    return made


class _Web:
    """Takes requests, unless it is away."""

    def __init__(self, *away: int) -> None:
        self._away = list(away)
        self.bodies: list[str] = []
        self.asked = 0

    async def request(self, _method: str, _url: str, content: bytes, headers: Any) -> httpx.Response:
        self.asked += 1
        if self.asked in self._away:
            return httpx.Response(503, headers={"Retry-After": "7"})
        self.bodies.append(content.decode())
        return httpx.Response(200)

    @asynccontextmanager
    async def stream(self, method: str, url: str, **parts: Any) -> AsyncIterator[httpx.Response]:
        yield await self.request(method, url, **parts)

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("tasks_max", [2, 1])
def test_what_moves_to_another_task_is_written_once(shelves: Shelves, tasks_max: int) -> None:
    async def story(site: Site) -> None:
        config = {"connector_class": _SOURCE, "names": "a,b,c,d", "topic": "t", "value_converter": _JSON}
        async with site.admin() as admin, site.worker(8083) as first, site.worker(8084) as second:
            await admin.topics.create("t", partitions=3, replication_factor=1)
            shelves.counts = dict.fromkeys(shelves.counts, 5)
            # The second task has read its shelves, and writes when others have them already.
            shelves.pauses_s = {1: 5.0}
            await first.create("in", **config, turn="0", tasks_max="2")
            await first.wait_until("in", "RUNNING", "RUNNING", "RUNNING")
            workers = {task["worker_id"] for task in (await first.get("/connectors/in/status"))["tasks"]}
            assert workers == {first.host, second.host}
            await first.create("in", **config, turn="1", tasks_max=str(tasks_max))

            async def found() -> Counter[tuple[str, int]]:
                return Counter(shelf_rows(await site.values("t", 0, 1, 2)))

            wanted = Counter((name, number) for name in shelves.counts for number in range(5))

            async def has_all() -> bool:
                return not wanted - await found()

            await asyncio.sleep(10)
            shelves.pauses_s = {}
            for name in shelves.counts:
                shelves.counts[name] += 1
            wanted += Counter((name, 5) for name in shelves.counts)
            await until(has_all)
            assert await found() == wanted

    Site().run(story)


def test_an_offset_is_not_committed_before_its_dead_letter_is_written(
    shelves: Shelves, tmp_path: Any
) -> None:
    async def story(site: Site) -> None:
        long = "no JSON" * 100
        async with site.admin() as admin, site.worker() as worker:
            await admin.topics.create(
                "dead", partitions=1, replication_factor=1, configs={"max.message.bytes": "300"}
            )
            await site.produce("t", long.encode())
            await worker.create(
                "out",
                connector_class="FileStreamSink",
                file=str(tmp_path / "out"),
                topics="t",
                value_converter=_JSON,
                errors_tolerance="all",
                errors_deadletterqueue_topic_name="dead",
            )
            failed = await worker.wait_for(
                "/connectors/out/status", lambda answer: answer["tasks"][0]["state"] == "FAILED"
            )
            assert "MESSAGE_TOO_LARGE" in failed["tasks"][0]["trace"]
            assert await worker.get("/connectors/out/offsets") == {"offsets": []}
            await admin.topics.delete("dead")
            # A topic that is made by the connector has as many replicas as there are brokers.
            await until(lambda: _has(site, "dead", [long]))
            await worker.wait_for(
                "/connectors/out/offsets",
                lambda answer: answer["offsets"][0]["offset"] == {"kafka_offset": 1},
            )

    Site().run(story)


def test_a_target_with_a_position_of_its_own_does_not_go_on_behind_a_dead_letter_that_is_not_written(
    shelves: Shelves, tmp_path: Path
) -> None:
    async def story(site: Site) -> None:
        bad = "no JSON" * 100
        row = {
            "schema": {"type": "struct", "fields": [{"field": "n", "type": "int64"}]},
            "payload": {"n": 1},
        }
        async with site.admin() as admin, site.worker() as worker:
            small = {"max.message.bytes": "300"}
            await admin.topics.create("dead", partitions=1, replication_factor=1, configs=small)
            await site.produce("t", bad.encode(), json.dumps(row).encode())
            await worker.create(
                "rows",
                connector_class="io.confluent.connect.jdbc.JdbcSinkConnector",
                connection_url=f"jdbc:sqlite:{tmp_path / 'db'}",
                auto_create="true",
                topics="t",
                value_converter=_JSON,
                errors_tolerance="all",
                errors_deadletterqueue_topic_name="dead",
            )
            await worker.wait_for(
                "/connectors/rows/status", lambda answer: answer["tasks"][0]["state"] == "FAILED"
            )
            await admin.topics.delete("dead")
            await until(lambda: _has(site, "dead", [bad]))

    Site().run(story)


async def _has(site: Site, topic: str, expected: list[str]) -> bool:
    return await site.values(topic) == expected


def test_a_target_that_is_away_gets_the_rest_later_and_the_task_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = _Web(3, 4, 6)
    plant(monkeypatch, Faults(Random(0), failing=0, slow=0), Shelves(()), web)

    async def story(site: Site) -> None:
        async with site.worker() as worker:
            await site.produce("t", *(str(number).encode() for number in range(5)))
            began_ms = site.simulation.now_us // 1000
            await worker.create(
                "web",
                connector_class="ottla.connect.HttpSinkConnector",
                http_url="http://web/",
                topics="t",
                consumer_override_max_poll_interval_ms="4000",
            )
            states: set[str] = set()

            def is_done(answer: Any) -> bool:
                states.update(task["state"] for task in answer["tasks"])
                return len(web.bodies) == 5

            await worker.wait_for("/connectors/web/status", is_done)
            assert site.simulation.now_us // 1000 - began_ms > 3 * 7000
            assert (states, web.bodies) == ({"RUNNING"}, ["0", "1", "2", "3", "4"])
            await worker.wait_for(
                "/connectors/web/offsets",
                lambda answer: answer["offsets"][0]["offset"] == {"kafka_offset": 5},
            )

    Site().run(story)


@pytest.mark.parametrize("topic", ["connect-configs", "connect-offsets", "connect-status"])
def test_a_record_of_a_stranger_does_not_stop_a_worker(shelves: Shelves, topic: str) -> None:
    async def story(site: Site) -> None:
        deep = b"[" * 100_000
        async with site.admin() as admin, site.worker() as worker:
            await admin.topics.create("t", partitions=3, replication_factor=1)
            async with Producer(site.bootstrap) as producer:
                for key in (deep, b'["in",{"shelf":"a"}]', b"connector-in", b"status-connector-in"):
                    await producer.send_and_wait(topic, deep, key=key)
            shelves.counts["a"] = 3
            config = {"connector_class": _SOURCE, "names": "a", "topic": "t", "value_converter": _JSON}
            await worker.create("in", **config, turn="0")

            async def has_all() -> bool:
                return len(await site.values("t", 0, 1, 2)) == 3

            await until(has_all)

    Site().run(story)


def test_a_target_whose_start_fails_is_stopped(
    shelves: Shelves, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[Database] = []
    closed: list[Database] = []

    def refuse(database: Database) -> None:
        opened.append(database)
        close = database.close

        def note_and_close() -> None:
            closed.append(database)
            close()

        monkeypatch.setattr(database, "close", note_and_close)
        raise ConnectError("no right to make tables")

    monkeypatch.setattr(table_sink, "create_offsets", refuse)

    async def story(site: Site) -> None:
        async with site.worker() as worker:
            await site.produce("t", b"1")
            await worker.create(
                "rows",
                connector_class="io.confluent.connect.jdbc.JdbcSinkConnector",
                connection_url=f"jdbc:sqlite:{tmp_path / 'db'}",
                topics="t",
            )

            async def has_tried() -> bool:
                return len(opened) > 2

            await until(has_tried)

    Site().run(story)
    assert closed == opened


@pytest.mark.parametrize("seed", range(3))
def test_whatever_fails_each_record_arrives(seed: int) -> None:
    pytest.importorskip("pyarrow")
    met = run_seed(seed, rounds=15)
    assert met["records"] > 0, f"replay with: make sim WHAT=connect SEED={seed} TIMES=1"


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_can_be_planted_and_leaves_no_trace(name: str) -> None:
    """Seeds that find them: `make sim WHAT=connect BUGS=1`."""
    right = BUGS[name].function.__code__
    with planted(BUGS[name]):
        assert BUGS[name].function.__code__ is not right
    assert BUGS[name].function.__code__ is right


@pytest.mark.thorough(
    guard="tests/simulation/connect/test_delivery.py::test_every_bug_can_be_planted_and_leaves_no_trace"
)
def test_a_planted_bug_is_found() -> None:
    """The first seed finds it."""
    assert find_bug("dead-letters-are-thrown-away", 1) == 0
