"""What every satellite checks before its own code sees a request."""

import asyncio
import json
import ssl
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from tests.unit.satellite.echo_api import EchoApi

from ottla.satellite.app import encode_json, read_request
from ottla.satellite.bodies import Bodies
from ottla.satellite.instances import Instances
from ottla.satellite.process import behind_doors
from ottla.satellite.settings import HttpSettings
from ottla.satellite.users import Users

JSON = {"content-type": "application/json"}


def _ask(
    method: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | httpx.Headers | None = None,
    users: Users | None = None,
    times: int = 1,
    after: str = "",
) -> httpx.Response:
    async def run() -> httpx.Response:
        url = "http://127.0.0.1:8081"
        instances = Instances(url, tuple, ssl.create_default_context(), lambda: 0, timeout_s=60)
        app = behind_doors(EchoApi(), instances, HttpSettings(allowed_hosts=("named.example",)), users)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url) as client:
            for _ in range(times):
                answer = await client.request(method, path, content=body, headers=headers)
            if after:
                answer = await client.get(after)
        await instances.close()
        return answer

    return asyncio.run(run())


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_a_body_has_to_say_that_it_is_json(kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    assert _ask("POST", "/things/a", b"{}", headers).status_code == 415


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_taken(kind: str) -> None:
    assert _ask("POST", "/things/a", b"{}", {"content-type": kind}).status_code == 200


def test_without_a_body_no_type_is_needed() -> None:
    assert _ask("POST", "/things/a").status_code == 200


def test_pages_of_others_are_refused_before_anything_is_done() -> None:
    assert _ask("POST", "/things/a", b"{}", {**JSON, "origin": "http://evil.example"}).status_code == 403
    assert _ask("POST", "/things/a", b"", {"sec-fetch-site": "cross-site"}).status_code == 403
    assert _ask("GET", "/things/a", headers={"host": "rebound.example:8081"}).status_code == 403
    assert _ask("GET", "/things/a", headers={"host": "named.example:8081"}).status_code == 200


def test_an_encoded_slash_is_part_of_a_name() -> None:
    assert _ask("GET", "/things/a%2Fb").json()["name"] == "a/b"


def test_too_large_a_body_is_refused() -> None:
    assert _ask("POST", "/things/a", b"x" * (4 * 1024 * 1024 + 1), JSON).status_code == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" + b"[]," * 60_000 + b"0]", 413),
        (b"{" + b'"":0,' * 60_000 + b'"":0}', 413),
        (b"[" + b'"","",' * 120_000 + b'""]', 413),
        (b'["' + b'{\\"a\\": [1, 2, 3]}\\\\' * 100_000 + b'"]', 200),
        (b"[" + b"0," * 40_000 + b" " * 1_000_000 + b"0]", 200),
    ],
)
def test_a_body_has_no_more_values_than_are_parsed_in_an_instant(body: bytes, status: int) -> None:
    assert _ask("POST", "/things/a", body, JSON).status_code == status


def test_a_body_of_lines_may_have_many_values() -> None:
    async def run() -> int:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"1,2\n" * 60_000}

        headers = [(b"content-type", b"text/csv"), (b"content-length", b"240000")]
        bodies = Bodies(["text/csv"])
        with bodies.held() as held:
            request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
            return len(await bodies.read(request, held))

    assert asyncio.run(run()) == 240_000


def test_the_parts_of_a_query_are_read_once() -> None:
    # Looking for each name among all others took seconds for the longest query that is read.
    query = "&".join(f"{number:x}" for number in range(50_000)) + "&a=1&a=2"
    sent = {
        "type": "http",
        "method": "GET",
        "query_string": query.encode(),
        "headers": [],
        "path": "/things/a",
    }
    received = read_request(Request({**sent, "path_params": {"name": "a%2Fb"}}), b"")
    assert len(received.query) == 50_000
    assert received.query["a"] == ["", "1", "2"]
    assert received.path == {"name": "a/b"}


@pytest.mark.parametrize(
    "headers",
    [
        [("content-length", "5"), ("transfer-encoding", "chunked")],
        [("host", "127.0.0.1"), ("host", "evil.example")],
        [("origin", "http://evil.example"), ("origin", "http://127.0.0.1:8081")],
        [("authorization", "Basic YTph"), ("authorization", "Basic YjpiCg==")],
    ],
)
def test_what_a_proxy_may_read_in_another_way_is_refused(headers: list[tuple[str, str]]) -> None:
    named = httpx.Headers([*headers, ("content-type", "application/json")])
    answer = _ask("POST", "/things/a", b"0\r\n\r\n", named)
    assert answer.status_code == 400
    # What follows on the connection is not read as the next request.
    assert answer.headers["connection"] == "close"


def test_guessing_is_slowed_down() -> None:
    users = Users({"ann": "secret"})
    right, wrong = {"authorization": "Basic YW5uOnNlY3JldA=="}, {"authorization": "Basic YW5uOnBpbms="}
    assert _ask("GET", "/things/a", headers=right, users=users).json()["user"] == "ann"
    assert _ask("GET", "/things/a", users=users, times=30).status_code == 401
    slowed = _ask("GET", "/things/a", headers=wrong, users=users, times=11)
    assert slowed.status_code == 429
    assert int(slowed.headers["retry-after"]) > 0


def test_requests_are_counted_by_their_routes_also_those_that_are_refused() -> None:
    text = _ask("GET", "/things/a%2Fb", after="/metrics").text
    assert 'ottla_satellite_requests_total{method="GET",route="/things/{name}",status="200"} 1.0' in text
    text = _ask("POST", "/things/a", headers={"origin": "http://evil.example"}, after="/metrics").text
    assert 'ottla_satellite_requests_total{method="POST",route="other",status="403"} 1.0' in text
    assert "evil" not in text
    text = _ask("BREW", "/no/such/path", after="/metrics").text
    assert 'ottla_satellite_requests_total{method="other",route="other",status="404"} 1.0' in text


def test_metrics_are_for_users_alone() -> None:
    assert _ask("GET", "/metrics", users=Users({"ann": "secret"})).status_code == 401


def test_half_a_character_is_answered_as_it_came() -> None:
    assert json.loads(encode_json({"é": "\ud800 and \\ud800"})) == {"é": "\ud800 and \\ud800"}
    assert encode_json("é") == '"é"'.encode()
