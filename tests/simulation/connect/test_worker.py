"""A worker runs connectors, answers requests, and shares its work with others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.connect.world import Site, until

SOURCE, SINK = "FileStreamSource", "FileStreamSink"


def write(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        file.writelines(f"line-{number}\n" for number in numbers)


def lines(*numbers: int) -> list[str]:
    return [f"line-{number}" for number in numbers]


async def has(site: Site, topic: str, expected: list[str]) -> bool:
    return await site.values(topic) == expected


def test_lines_go_to_a_topic_and_to_a_file_and_stay_through_a_pause(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            write(tmp_path / "in", 0, 1)
            await worker.create("in", connector_class=SOURCE, file=str(tmp_path / "in"), topic="t")
            await worker.create("out", connector_class=SINK, file=str(tmp_path / "out"), topics="t")
            await until(lambda: has(site, "t", lines(0, 1)))
            position = {"partition": {"filename": str(tmp_path / "in")}, "offset": {"position": 14}}
            assert await worker.get("/connectors/in/offsets") == {"offsets": [position]}
            assert await worker.ask("PUT", "/connectors/in/pause") == (202, None)
            await worker.wait_until("in", "PAUSED", "PAUSED")
            write(tmp_path / "in", 2)
            assert await worker.ask("PUT", "/connectors/in/resume") == (202, None)
            await worker.wait_until("in", "RUNNING", "RUNNING")
            await until(lambda: has(site, "t", lines(0, 1, 2)))
            await worker.wait_for("/", lambda _: (tmp_path / "out").read_text().split() == lines(0, 1, 2))
            assert await worker.get("/connectors/in/topics") == {"in": {"topics": ["t"]}}
            assert await worker.ask("PUT", "/connectors/in/topics/reset") == (202, None)
            assert await worker.get("/connectors/in/topics") == {"in": {"topics": []}}
            await worker.wait_for(
                "/connectors/out/offsets", lambda answer: answer["offsets"][0]["offset"]["kafka_offset"] >= 3
            )
        # Another life knows all of it.
        async with site.worker() as worker:
            assert await worker.get("/connectors") == ["in", "out"]
            await worker.wait_until("in", "RUNNING", "RUNNING")
            write(tmp_path / "in", 3)
            await worker.wait_for("/", lambda _: (tmp_path / "out").read_text().split() == lines(0, 1, 2, 3))
            assert await worker.ask("DELETE", "/connectors/in") == (204, None)
            assert await worker.ask("DELETE", "/connectors/in") == (
                404,
                {"error_code": 404, "message": "Connector in not found"},
            )
            assert await worker.get("/connectors") == ["out"]

    Site().run(story)


def test_what_is_known_of_a_connector_is_shown(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            config = {"connector.class": SOURCE, "file": str(tmp_path / "in"), "topic": "t"}
            body = {"name": " mine ", "config": config}
            status, info = await worker.ask("POST", "/connectors", body)
            assert (status, info["name"], info["type"]) == (201, "mine", "source")
            assert info["config"] == {**config, "name": "mine"}
            assert worker.headers["location"] == "http://127.0.0.1:8083/connectors/mine"
            await worker.wait_until("mine", "RUNNING", "RUNNING")
            shown = await worker.get("/connectors/mine")
            assert shown == {**info, "tasks": [{"connector": "mine", "task": 0}]}
            assert await worker.get("/connectors/mine/config") == info["config"]
            (task,) = await worker.get("/connectors/mine/tasks")
            assert task["id"] == {"connector": "mine", "task": 0}
            assert task["config"]["task.class"].endswith("FileStreamSourceTask")
            status = await worker.get("/connectors/mine/status")
            assert (status["name"], status["type"]) == ("mine", "source")
            assert {item["worker_id"] for item in (status["connector"], *status["tasks"])} == {worker.host}
            one = await worker.get("/connectors/mine/tasks/0/status")
            assert (one["id"], one["state"]) == (0, "RUNNING")
            assert await worker.get("/connectors?expand=info&expand=status") == {
                "mine": {"info": shown, "status": status}
            }
            assert await worker.get("/connectors?expand=info") == {"mine": {"info": shown}}
            assert await worker.get("/connectors?expand=other") == {"mine": {}}
            again = await worker.ask("POST", "/connectors", body)
            assert again == (409, {"error_code": 409, "message": "Connector mine already exists"})
            status, _ = await worker.ask("PATCH", "/connectors/mine/config", {"topic": None})
            assert status == 400
            patch = {"topic": "u", "batch.size": 7}
            status, changed = await worker.ask("PATCH", "/connectors/mine/config", patch)
            assert status == 200
            assert changed["config"] == {**config, "name": "mine", "topic": "u", "batch.size": "7"}
            status, _ = await worker.ask("PUT", "/connectors/mine/config", config)
            assert status == 200
            assert "location" not in worker.headers

    Site().run(story)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/connectors/none", None, 404, "Connector none not found"),
        ("GET", "/connectors/none/config", None, 404, "Connector none not found"),
        ("GET", "/connectors/none/tasks", None, 404, "Connector none not found"),
        ("GET", "/connectors/none/status", None, 404, "No status found for connector none"),
        ("GET", "/connectors/none/tasks/0/status", None, 404, "No status found for task none-0"),
        ("GET", "/connectors/none/tasks/x/status", None, 404, "HTTP 404 Not Found"),
        ("GET", "/connectors/none/offsets", None, 404, "Connector none not found"),
        ("PATCH", "/connectors/none/config", {"a": "b"}, 404, "Connector none not found"),
        ("PUT", "/connectors/none/pause", None, 404, "Unknown connector"),
        ("PUT", "/connectors/none/stop", None, 404, "Unknown connector"),
        ("POST", "/connectors/none/restart", None, 404, "Unknown connector"),
        ("POST", "/connectors/none/tasks/0/restart", None, 404, "Unknown connector"),
        ("POST", "/connectors", {"config": {}, "odd": 1}, 500, "other fields"),
        ("POST", "/connectors", [], 500, "other fields"),
        ("POST", "/connectors", {"name": "a"}, 500, "it has no config"),
        ("POST", "/connectors", {"name": 1, "config": {}}, 500, "the name is not a text"),
        ("POST", "/connectors", {"name": "a", "config": {"x": []}}, 500, "'x' is not a text"),
        ("POST", "/connectors", {"name": "a", "config": {"name": "b"}}, 400, "doesn't match connector name"),
        (
            "POST",
            "/connectors",
            {"config": {}, "initial_state": "ODD"},
            500,
            "not RUNNING, PAUSED or STOPPED",
        ),
        ("POST", "/connectors", b"", 500, "it is empty"),
        ("POST", "/connectors", b"{", 500, "it is not JSON"),
        ("PUT", "/connectors/a/config", [], 500, "an object of texts"),
        ("PUT", "/connectors/a/config", {"name": "b"}, 400, "doesn't match connector name in the URL (a)"),
        ("PUT", "/connectors/a/config", {}, 400, "contains no connector type"),
        ("PUT", "/connectors/a/config", {"connector.class": "Odd"}, 400, "name matches Odd"),
        ("POST", "/connectors/a/tasks", [], 400, "missing required signature"),
        ("PUT", "/connectors/a/fence", None, 400, "missing required signature"),
        ("GET", "/connector-plugins/Odd/config", None, 404, "Unknown plugin Odd."),
        ("GET", "/connector-plugins/Odd/config?version=[1", None, 400, "Invalid version specification: [1"),
        ("GET", "/admin/loggers/odd", None, 404, "Logger odd not found."),
        ("PUT", "/admin/loggers/odd", {}, 400, "'level' parameter was not specified"),
        ("PUT", "/admin/loggers/odd", [], 400, "'level' parameter was not specified"),
        ("PUT", "/admin/loggers/odd", {"level": "LOUD"}, 404, "invalid log level 'LOUD'."),
        ("GET", "/odd", None, 404, "HTTP 404 Not Found"),
        ("DELETE", "/connectors", None, 405, "HTTP 405 Method Not Allowed"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    site_with_worker: Any, method: str, path: str, body: Any, status: int, text: str
) -> None:
    found, answer = site_with_worker.ask(method, path, body)
    assert (found, answer["error_code"]) == (status, status), answer
    assert text in answer["message"]


class OneWorker:
    """A worker for requests that change nothing."""

    def __init__(self) -> None:
        self._site = Site()
        self._entered: Any = None
        self._worker: Any = None

    def start(self) -> None:
        async def story(site: Site) -> None:
            self._entered = site.worker()
            self._worker = await self._entered.__aenter__()

        self._site.run(story)

    def stop(self) -> None:
        async def story(_site: Site) -> None:
            await self._entered.__aexit__(None, None, None)

        self._site.run(story)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        async def story(_site: Site) -> tuple[int, Any]:
            answer: tuple[int, Any] = await self._worker.ask(method, path, body, **headers)
            return answer

        return self._site.run(story)


@pytest.fixture(scope="module")
def site_with_worker() -> Iterator[OneWorker]:
    """A worker without connectors. It is shared."""
    worker = OneWorker()
    worker.start()
    yield worker
    worker.stop()


def test_plugins_and_their_keys_are_listed(site_with_worker: OneWorker) -> None:
    _, connectors = site_with_worker.ask("GET", "/connector-plugins")
    _, everything = site_with_worker.ask("GET", "/connector-plugins?connectorsOnly=false")
    assert {item["type"] for item in connectors} == {"source", "sink"}
    assert {"converter", "transformation"} <= {item["type"] for item in everything}
    status, keys = site_with_worker.ask("GET", "/connector-plugins/FileStreamSource/config?version=[1.0]")
    assert status == 200
    assert {"name", "connector.class", "file", "topic", "tasks.max"} <= {key["name"] for key in keys}


def test_a_configuration_is_checked_without_being_used(site_with_worker: OneWorker) -> None:
    path = f"/connector-plugins/{SOURCE}/config/validate"
    right = {"connector.class": SOURCE, "name": "a", "topic": "t", "file": "f"}
    status, answer = site_with_worker.ask("PUT", path, right)
    assert (status, answer["error_count"]) == (200, 0)
    _, answer = site_with_worker.ask("PUT", path, {**right, "topic": None})
    assert answer["error_count"] == 1
    (wrong,) = [item["value"] for item in answer["configs"] if item["value"]["errors"]]
    assert wrong["name"] == "topic"
    status, answer = site_with_worker.ask("PUT", path, {"connector.class": SINK})
    assert (status, answer["message"]) == (
        400,
        f"Included connector type {SINK} does not match request type {SOURCE}",
    )
    assert site_with_worker.ask("GET", "/connectors") == (200, [])


def test_what_is_neither_asked_nor_answered_as_json_is_refused(site_with_worker: OneWorker) -> None:
    assert site_with_worker.ask("GET", "/", None, accept="text/html")[0] == 406
    assert site_with_worker.ask("GET", "/", None, accept="text/html, application/*;q=0.1")[0] == 200
    assert site_with_worker.ask("POST", "/connectors", {}, content_type="text/plain")[0] == 415
    assert site_with_worker.ask("POST", "/connectors", b" " * (16 * 1024 * 1024 + 1))[0] == 413
    status, root = site_with_worker.ask("GET", "/")
    assert (status, sorted(root)) == (200, ["commit", "kafka_cluster_id", "version"])
    assert site_with_worker.ask("GET", "/health")[1]["status"] == "healthy"


def test_a_level_of_logging_can_be_set(site_with_worker: OneWorker) -> None:
    status, changed = site_with_worker.ask("PUT", "/admin/loggers/ottla.odd", {"level": "debug"})
    assert (status, changed) == (200, ["ottla.odd"])
    assert site_with_worker.ask("GET", "/admin/loggers/ottla.odd")[1]["level"] == "DEBUG"
    assert site_with_worker.ask("GET", "/admin/loggers")[1]["ottla.odd"]["level"] == "DEBUG"
    status, _ = site_with_worker.ask("PUT", "/admin/loggers/ottla.odd?scope=cluster", {"level": "WARN"})
    assert status == 204
    assert site_with_worker.ask("GET", "/admin/loggers/ottla.odd")[1]["level"] == "WARN"


def test_a_connector_may_begin_paused_or_stopped(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            write(tmp_path / "in", 0)
            config = {"connector.class": SOURCE, "file": str(tmp_path / "in"), "topic": "t"}
            for state, tasks in (("PAUSED", []), ("STOPPED", []), ("running", ["RUNNING"])):
                name = state.lower()
                body = {"name": name, "config": {**config, "topic": name}, "initial_state": state}
                assert (await worker.ask("POST", "/connectors", body))[0] == 201
                await worker.wait_until(name, state.upper(), *tasks)
            await until(lambda: has(site, "running", lines(0)))
            assert await site.values("paused") == await site.values("stopped") == []
            # A stopped connector has no tasks; one that goes on has them again.
            assert await worker.ask("PUT", "/connectors/running/stop") == (204, None)
            await worker.wait_until("running", "STOPPED")
            await worker.wait_for("/connectors/running/tasks", lambda answer: answer == [])
            assert await worker.ask("PUT", "/connectors/stopped/resume") == (202, None)
            await worker.wait_until("stopped", "RUNNING", "RUNNING")
            await until(lambda: has(site, "stopped", lines(0)))

    Site().run(story)


def test_where_a_stopped_source_goes_on_can_be_altered_and_reset(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            path, offsets = tmp_path / "in", "/connectors/in/offsets"
            write(path, 0, 1, 2)
            await worker.create("in", connector_class=SOURCE, file=str(path), topic="t")
            await until(lambda: has(site, "t", lines(0, 1, 2)))
            at = {"partition": {"filename": str(path)}, "offset": {"position": 14}}
            running = await worker.ask("PATCH", offsets, {"offsets": [at]})
            assert (running[0], "STOPPED state" in running[1]["message"]) == (400, True)
            assert (await worker.ask("DELETE", offsets))[0] == 400
            await worker.ask("PUT", "/connectors/in/stop")
            await worker.wait_until("in", "STOPPED")
            await worker.wait_for("/connectors/in/tasks", lambda answer: answer == [])
            for body, status, text in (
                ({}, 400, "need to be provided"),
                ([], 400, "need to be provided"),
                ({"offsets": {}}, 500, "not a list"),
                ({"offsets": [1]}, 500, "a `partition` and an `offset`"),
                ({"offsets": [{"partition": {}, "offset": 1}]}, 500, "a `partition` and an `offset`"),
                ({"offsets": [{"partition": {}, "offset": None}]}, 500, "the key 'filename'"),
                ({"offsets": [{**at, "offset": {"position": -1}}]}, 500, "non-negative"),
            ):
                found, answer = await worker.ask("PATCH", offsets, body)
                assert (found, text in answer["message"]) == (status, True), answer
            status, answer = await worker.ask("PATCH", offsets, {"offsets": [at]})
            assert (status, answer["message"]) == (
                200,
                "The offsets for this connector have been altered successfully",
            )
            assert await worker.get(offsets) == {"offsets": [at]}
            await worker.ask("PUT", "/connectors/in/resume")
            await until(lambda: has(site, "t", lines(0, 1, 2, 2)))
            await worker.ask("PUT", "/connectors/in/stop")
            await worker.wait_for("/connectors/in/tasks", lambda answer: answer == [])
            status, answer = await worker.ask("DELETE", offsets)
            assert (status, answer["message"]) == (
                200,
                "The offsets for this connector have been reset successfully",
            )
            assert await worker.get(offsets) == {"offsets": []}
            assert (await worker.ask("DELETE", offsets))[0] == 200
            await worker.ask("PUT", "/connectors/in/resume")
            await until(lambda: has(site, "t", lines(0, 1, 2, 2, 0, 1, 2)))

    Site().run(story)


def test_where_a_stopped_sink_goes_on_can_be_altered_and_reset(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            out, offsets = tmp_path / "out", "/connectors/out/offsets"
            await site.produce("t", b"a", b"b", b"c")
            await worker.create("out", connector_class=SINK, file=str(out), topics="t")

            def at(offset: int) -> dict[str, Any]:
                where = {"kafka_topic": "t", "kafka_partition": 0}
                return {"partition": where, "offset": {"kafka_offset": offset}}

            await worker.wait_for(offsets, lambda answer: answer == {"offsets": [at(3)]})
            assert out.read_text() == "a\nb\nc\n"
            await worker.ask("PUT", "/connectors/out/stop")
            await worker.wait_for("/connectors/out/tasks", lambda answer: answer == [])
            await worker.wait_until("out", "STOPPED")
            wrong: tuple[tuple[Any, str], ...] = (
                ({**at(1), "partition": {"kafka_topic": "t"}}, "must contain the keys"),
                ({**at(1), "offset": {"odd": 1}}, "contain the key 'kafka_offset'"),
                ({**at(1), "offset": {"kafka_offset": "x"}}, "Offset values for sink connectors need to be"),
                (
                    {**at(1), "partition": {"kafka_topic": "t", "kafka_partition": "x"}},
                    "Partition values for sink connectors need to be integers",
                ),
            )
            for item, text in wrong:
                status, answer = await worker.ask("PATCH", offsets, {"offsets": [item]})
                assert (status, text in answer["message"]) == (400, True), answer
            assert (await worker.ask("PATCH", offsets, {"offsets": [at(2)]}))[0] == 200
            assert await worker.get(offsets) == {"offsets": [at(2)]}
            await worker.ask("PUT", "/connectors/out/resume")
            await worker.wait_for("/", lambda _: out.read_text() == "a\nb\nc\nc\n")
            await worker.ask("PUT", "/connectors/out/stop")
            await worker.wait_for("/connectors/out/tasks", lambda answer: answer == [])
            removed = {**at(0), "offset": None}
            assert (await worker.ask("PATCH", offsets, {"offsets": [removed]}))[0] == 200
            assert await worker.get(offsets) == {"offsets": []}
            await worker.ask("PATCH", offsets, {"offsets": [at(2)]})
            assert (await worker.ask("DELETE", offsets))[0] == 200
            assert await worker.get(offsets) == {"offsets": []}
            assert (await worker.ask("DELETE", offsets))[0] == 200, "nothing is left to reset"
            await worker.ask("PUT", "/connectors/out/resume")
            await worker.wait_for("/", lambda _: out.read_text() == "a\nb\nc\nc\na\nb\nc\n")

    Site().run(story)


def test_what_failed_says_why_and_is_restarted_when_that_is_asked_for(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            await site.produce("t", b"nonsense")
            options = {"connector_class": SINK, "file": str(tmp_path / "out"), "topics": "t"}
            options["value_converter"] = "org.apache.kafka.connect.json.JsonConverter"
            await worker.create("out", **options)
            failed = await worker.wait_until("out", "RUNNING", "FAILED")
            told = failed["tasks"][0]["trace"].splitlines()[0]
            assert told.startswith("Tolerance exceeded in error handler: a record of "), told
            status, answer = await worker.ask(
                "POST", "/connectors/out/restart?includeTasks=true&onlyFailed=true"
            )
            assert status == 202
            assert [answer["connector"]["state"], answer["tasks"][0]["state"]] == ["RUNNING", "RESTARTING"]
            await worker.wait_until("out", "RUNNING", "FAILED")
            assert await worker.ask("POST", "/connectors/out/restart") == (204, None)
            assert await worker.ask("POST", "/connectors/out/tasks/0/restart") == (204, None)
            assert (await worker.ask("POST", "/connectors/out/tasks/1/restart"))[1]["message"] == (
                "Unknown task: out-1"
            )
            await worker.wait_until("out", "RUNNING", "FAILED")
            await worker.create(
                "out",
                **options,
                errors_tolerance="all",
                errors_deadletterqueue_topic_name="dead",
                errors_deadletterqueue_topic_replication_factor="1",
                errors_deadletterqueue_context_headers_enable="true",
            )
            await worker.wait_until("out", "RUNNING", "RUNNING")
            letters = await until(lambda: site.records("dead"))
            headers = {name: (value or b"").decode() for name, value in letters[0].headers}
            assert (letters[0].value, headers["__connect.errors.stage"]) == (b"nonsense", "VALUE_CONVERTER")

    Site().run(story)


def test_more_tasks_than_may_be_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            plugin = worker.worker.plugins.find_connector(SOURCE)
            assert plugin is not None
            tasks = [{"file": str(tmp_path / "in"), "topic": "t"}] * 3
            monkeypatch.setattr(type(plugin), "task_configs", property(lambda _: lambda config, most: tasks))
            options = {"connector_class": SOURCE, "file": str(tmp_path / "in"), "topic": "t"}
            await worker.create("in", **options, tasks_max="2")
            failed = await worker.wait_for(
                "/connectors/in/status", lambda answer: answer["connector"]["state"] == "FAILED"
            )
            assert "has generated 3 tasks, which is greater than 2" in failed["connector"]["trace"]
            assert await worker.get("/connectors/in/tasks") == []
            await worker.create("in", **options, tasks_max="3")
            await worker.wait_until("in", "RUNNING", *["RUNNING"] * 3)
            await worker.create("in", **options, tasks_max="2", tasks_max_enforce="false")
            await worker.wait_until("in", "RUNNING", *["RUNNING"] * 3)

    Site().run(story)


def test_two_workers_share_connectors_and_forward_requests(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        names = [f"lines-{number}" for number in range(4)]
        async with site.worker(8083) as first:
            async with site.worker(8084) as second:
                for number, name in enumerate(names):
                    write(tmp_path / name, 0)
                    options = {"connector_class": SOURCE, "file": str(tmp_path / name), "topic": name}
                    # One of them leads, and the other one forwards.
                    await until(lambda: leader_is_known(first, second))
                    await (first, second)[number % 2].create(name, **options)
                for name in names:
                    await second.wait_until(name, "RUNNING", "RUNNING")
                    await until(lambda name=name: has(site, name, lines(0)))  # type: ignore[misc]
                runners = [
                    (await first.get(f"/connectors/{name}/status"))["tasks"][0]["worker_id"] for name in names
                ]
                assert set(runners) == {first.host, second.host}
                assert first.worker.is_leader != second.worker.is_leader
                # A task is restarted by the one who runs it, whoever is asked.
                for worker in (first, second):
                    for name in names:
                        assert (await worker.ask("POST", f"/connectors/{name}/tasks/0/restart"))[0] == 204
                follower = second if first.worker.is_leader else first
                forged = {"x-connect-authorization": "Zm9yZ2Vk"}
                status, answer = await follower.ask("POST", "/connectors/lines-0/tasks", [], **forged)
                assert (status, "invalid signature" in answer["message"]) == (403, True)
                for path in ("tasks", "fence"):
                    # A worker must not pass on for a client what only workers may ask.
                    method = "POST" if path == "tasks" else "PUT"
                    status, answer = await follower.ask(
                        method, f"/connectors/lines-0/{path}?scope=cluster", []
                    )
                    assert (status, answer["message"]) == (400, "Internal request missing required signature")
                twice = await follower.ask("DELETE", "/connectors/lines-0?forward=false")
                assert twice[0] == 409
            for name in names:
                write(tmp_path / name, 1)
                await first.wait_for(
                    f"/connectors/{name}/status",
                    lambda answer: [task["worker_id"] for task in answer["tasks"]] == [first.host],
                )
                await until(lambda name=name: has(site, name, lines(0, 1)))  # type: ignore[misc]

    async def leader_is_known(*workers: Any) -> bool:
        return len({worker.worker.leader_url for worker in workers}) == 1

    Site().run(story)


def test_the_key_of_the_workers_is_renewed_while_one_of_them_leads() -> None:
    async def story(site: Site) -> None:
        async with site.worker(properties={"inter.worker.key.ttl.ms": "60000"}) as worker:
            first = worker.worker.configs.session_key
            assert first is not None

            async def is_renewed() -> bool:
                return worker.worker.configs.session_key != first

            await until(is_renewed)
            assert worker.worker.configs.previous_session_key == first

    Site().run(story)


def test_a_worker_that_does_not_lead_forwards_to_the_one_that_does_and_to_nobody_else(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker(8083) as one, site.worker(8084) as other:
            (follower,) = (worker for worker in (one, other) if not worker.worker.is_leader)
            await follower.create("in", connector_class=SOURCE, file=str(tmp_path / "in"), topic="t")
            # The group names somebody who does not know the key.
            heard: list[Any] = []

            async def impostor(scope: Any, _receive: Any, send: Any) -> None:
                heard.append((scope["method"], scope["path"]))
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"{}"})

            site.satellites.apps["127.0.0.1:9999"] = impostor
            follower.worker.membership.leader_url = "http://127.0.0.1:9999/"
            status, answer = await follower.ask("DELETE", "/connectors/in")
            assert status == 500
            assert "has not proved" in answer["message"]
            assert heard == [("GET", "/ottla/instance")]

    Site().run(story)


def test_half_a_character_in_a_configuration_fails_no_list(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with site.worker() as worker:
            config = {"connector.class": SOURCE, "file": str(tmp_path / "in"), "topic": "t", "note": "\ud800"}
            status, answer = await worker.ask("PUT", "/connectors/odd/config", config)
            assert (status, answer["config"]["note"]) == (201, "\ud800")
            listed = await worker.get("/connectors?expand=info")
            assert listed["odd"]["info"]["config"]["note"] == "\ud800"

    Site().run(story)
