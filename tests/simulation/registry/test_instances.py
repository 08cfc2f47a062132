"""Several instances: one writes, the others forward to it, and take over when it goes."""

import asyncio
from typing import Any

import pytest
from tests.simulation.registry.world import Site

from ottla.satellite.topic import TopicWriter
from ottla.schemas.stored.records import NOOP


@pytest.fixture
def site() -> Site:
    return Site(seed=3)


def test_what_another_instance_gets_is_written_by_the_one_that_writes(site: Site) -> None:
    writer, other = site.instance(8081), site.instance(8082)
    assert writer.registry.is_leader
    assert not other.registry.is_leader

    registered = other.register("s", '"int"')

    assert (registered["id"], registered["version"]) == (1, 1)
    assert writer.ask("GET", "/subjects/s/versions") == (200, [1])
    status, refused = other.ask("DELETE", "/subjects/none")
    assert (status, refused["error_code"]) == (404, 40401)
    assert other.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    # What is registered already any instance can tell.
    other.wait_until(lambda: other.ask("GET", "/subjects") == (200, ["s"]))
    writer.vanish()
    assert other.register("s", '"int"')["id"] == 1


def test_a_request_is_forwarded_once_at_most(site: Site) -> None:
    site.instance(8081)
    other = site.instance(8082)
    status, answer = other.ask("PUT", "/config/s", {"compatibility": "FULL"}, X_Forward="true")
    assert (status, answer["error_code"]) == (500, 50004)
    assert other.ask("PUT", "/config/s", {"compatibility": "FULL"})[0] == 200


def test_the_next_instance_writes_when_the_first_has_left(site: Site) -> None:
    first, second = site.instance(8081), site.instance(8082)
    first.register("s", '"int"')

    first.stop()

    second.wait_until(lambda: second.registry.is_leader)
    assert second.register("s-2", '"long"')["id"] == 2
    assert second.ask("GET", "/subjects") == (200, ["s", "s-2"])


def test_what_cannot_be_sent_waits_for_the_next_writer(site: Site) -> None:
    first, second = site.instance(8081), site.instance(8082)
    site.network.apps.pop(first.host)

    async def register_while_the_first_leaves() -> tuple[int, Any]:
        asked = asyncio.ensure_future(second.send("POST", "/subjects/s/versions", {"schema": '"int"'}))
        await first.registry.stop()
        return await asked

    status, answer = site.run(register_while_the_first_leaves())

    assert (status, answer["id"]) == (200, 1)
    assert second.registry.is_leader


def test_an_instance_that_may_not_write_never_does(site: Site) -> None:
    writer = site.instance(8081)
    reader = site.instance(8082, is_eligible=False)
    writer.stop()
    reader.wait_until(lambda: reader.registry.leader is None)
    assert not reader.registry.is_leader


def test_a_writer_that_was_fenced_takes_over_again(site: Site) -> None:
    writer = site.instance(8081)
    writer.register("s", '"int"')

    async def fence() -> None:
        # Another instance that was taken for the writer: its epoch is the higher one.
        registry = writer.registry
        other = TopicWriter(registry._cluster, registry._reader, registry._writer_name, [NOOP])
        await other.start()

    site.run(fence())

    status, answer = writer.ask("POST", "/subjects/s-2/versions", {"schema": '"long"'})
    assert (status, answer["error_code"]) == (500, 50004)
    assert writer.register("s-2", '"long"')["id"] == 2


def test_a_write_that_was_given_up_and_arrives_late_shares_no_id(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = site.instance(8081)
    registry = instance.registry
    writer, on_the_way = registry._writer, []
    assert writer is not None
    produce, raise_epoch = writer._produce, writer._raise_epoch

    async def never_answered(batch: bytes) -> int:
        on_the_way.append(batch)
        return await asyncio.Future()

    async def raised_when_it_has_arrived() -> Any:
        while on_the_way:
            await produce(on_the_way.pop())
        return await raise_epoch()

    async def story() -> tuple[int, Any]:
        monkeypatch.setattr(writer, "_produce", never_answered)
        given_up = asyncio.ensure_future(instance.send("POST", "/subjects/a/versions", {"schema": '"int"'}))
        while not on_the_way:
            await asyncio.sleep(0.1)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        monkeypatch.setattr(writer, "_produce", produce)
        monkeypatch.setattr(writer, "_raise_epoch", raised_when_it_has_arrived)
        return await instance.send("POST", "/subjects/b/versions", {"schema": '"long"'})

    status, answer = site.run(story())

    assert status == 200
    assert instance.ask("GET", f"/schemas/ids/{answer['id']}/subjects") == (200, ["b"])


def test_a_write_that_is_too_large_is_refused_and_the_next_one_is_not(site: Site) -> None:
    writer = site.instance(8081)
    doc = "x" * 2_000_000
    large = f'{{"type":"record","name":"R","doc":"{doc}","fields":[]}}'
    status, answer = writer.ask("POST", "/subjects/s/versions", {"schema": large})
    assert (status, answer["error_code"]) == (422, 42209)
    assert writer.register("s", '"int"')["version"] == 1


def test_a_cluster_that_is_away_makes_writes_fail_and_not_reads(site: Site) -> None:
    writer = site.instance(8081)
    writer.register("s", '"int"')
    site.cut_power()
    status, answer = writer.ask("POST", "/subjects/s-2/versions", {"schema": '"long"'})
    assert (status, answer["error_code"]) == (500, 50002)
    assert writer.ask("GET", "/subjects") == (200, ["s"])
    site.switch_on()
    writer.wait_until(lambda: writer.ask("POST", "/subjects/s-2/versions", {"schema": '"long"'})[0] == 200)
    assert writer.ask("GET", "/subjects/s-2/versions") == (200, [1])


def test_a_reader_that_stumbles_over_a_record_tries_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = site.instance(8081)
    replay, failures = writer.registry.state.replay, [RuntimeError("a bug of ours")]

    def stumble(record: Any) -> None:
        if failures:
            raise failures.pop()
        replay(record)

    monkeypatch.setattr(writer.registry.state, "replay", stumble)

    assert writer.register("s", '"int"')["version"] == 1
    assert not failures


def test_a_leader_that_proves_nothing_is_sent_nothing(site: Site) -> None:
    first, second = site.instance(8081), site.instance(8082)
    seen: list[tuple[str, str]] = []

    async def impostor(scope: Any, _receive: Any, send: Any) -> None:
        seen.append((scope["method"], scope["path"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    site.network.apps[first.host] = impostor

    status, answer = second.ask("PUT", "/config/s", {"compatibility": "FULL"})

    assert (status, answer["error_code"]) == (500, 50003)
    assert "has not proved that it is an instance of this cluster" in answer["message"]
    assert {method for method, _ in seen} == {"GET"}
