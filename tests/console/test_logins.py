"""The console has no rights of its own: a visitor logs in at the cluster, and sees what that user may see."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from tests.console.test_connectors import FakeWorker, console_with
from tests.support.console_visitor import ConsoleVisitor
from tests.support.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.admin.access_rules import Operation, Resource, Rule
from ottla.client.admin.credentials import ScramMechanism
from ottla.console.serving.headers import POLICY
from ottla.console.serving.streams import Event
from ottla.console.settings import ClusterSettings, ConsoleSettings
from ottla.satellite.settings import HttpSettings, UnusableSettings
from ottla.testing.ports import free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PREFIX = "listener.name.sasl_plaintext"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address at which a node asks for logins. Ann may see `shop`, and nothing else."""
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://{address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{PREFIX}.plain.sasl.jaas.config": f'{PLAIN} required username="x" password="x" user_ann="secret";',
        f"{PREFIX}.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:root",
        "offsets.topic.num.partitions": "1",
    }
    with OttlaNode(tmp_path_factory.mktemp("guarded"), settings) as node:
        asyncio.run(_prepare(node.bootstrap))
        yield address


async def _prepare(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.topics.create("shop", partitions=1)
        await admin.topics.create("payroll", partitions=1)
        await admin.credentials.set_password("root", "toor", ScramMechanism.SCRAM_SHA_512)
        may = Operation.DESCRIBE, Operation.READ, Operation.DESCRIBE_CONFIGS
        await admin.access_rules.create(Rule("User:ann", one, Resource.TOPIC, "shop") for one in may)


@pytest.fixture
def stranger(guarded: str) -> Iterator[ConsoleVisitor]:
    """Somebody who has not logged in."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        # The console must not use these.
        "sasl.username": "root",
        "sasl.password": "toor",
    }
    with ConsoleVisitor.of(guarded, **properties) as looking:
        yield looking


def log_in(visitor: ConsoleVisitor, user: str, password: str, mechanism: str, to: str = "") -> httpx.Response:
    visitor.get("//login/c")
    form = {"user": user, "password": password, "mechanism": mechanism, "next": to}
    return visitor.post("//login/c", form)


def test_nothing_is_shown_before_the_login(stranger: ConsoleVisitor) -> None:
    for path in ("", "/topics", "/topics/shop/records", "/groups", "/access"):
        answer = stranger.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/login/c?next=%2Fc%2Fc")
    assert stranger.get("//api/c/c/topics").status_code == 401
    assert stranger.get("/topics", {"hx-request": "true"}).headers["hx-redirect"].startswith("/login/c")


def test_a_visitor_sees_what_the_user_may_see(stranger: ConsoleVisitor) -> None:
    answer = log_in(stranger, "ann", "secret", "PLAIN", "/c/c/topics?q=s")
    assert answer.headers["location"] == "/c/c/topics?q=s"
    page = stranger.page("/topics")
    assert ">ann<" in page
    assert "shop" in page
    assert "payroll" not in page
    assert stranger.get("/topics/payroll").status_code == 403
    assert "The console does what ann may do" in stranger.get("/topics/payroll").text


def test_one_visitor_does_not_see_what_another_has_read(stranger: ConsoleVisitor) -> None:
    log_in(stranger, "root", "toor", "SCRAM-SHA-512")
    assert "payroll" in stranger.page("/topics")
    of_root, stranger.client = stranger.client, stranger.another()
    log_in(stranger, "ann", "secret", "PLAIN")
    assert "payroll" not in stranger.page("/topics")
    stranger.run(of_root.aclose())


def test_a_wrong_password_is_a_sentence_and_soon_a_wait(stranger: ConsoleVisitor) -> None:
    answer = log_in(stranger, "ann", "wrong", "PLAIN")
    assert answer.status_code == 403
    assert "refused user" in answer.text
    statuses = {log_in(stranger, "ann", "wrong", "PLAIN").status_code for _ in range(12)}
    assert statuses == {403, 429}
    assert log_in(stranger, "ann", "secret", "PLAIN").status_code == 429


def test_a_logout_ends_the_session(stranger: ConsoleVisitor) -> None:
    log_in(stranger, "ann", "secret", "PLAIN")
    kept = dict(stranger.client.cookies)
    assert stranger.get("/topics").status_code == 200
    assert stranger.post("//logout", {}).status_code == 303
    stranger.client.cookies.update(kept)
    assert stranger.get("/topics").status_code == 303


def test_a_session_ends_and_its_connections_too(guarded: str) -> None:
    now = [0.0]
    settings = ConsoleSettings(
        (ClusterSettings.of("c", {"bootstrap.servers": guarded, "security.protocol": "SASL_PLAINTEXT"}),),
        idle_s=60,
    )
    with ConsoleVisitor(settings, now_s=lambda: now[0]) as visitor:
        log_in(visitor, "ann", "secret", "PLAIN")
        assert visitor.get("/topics").status_code == 200
        now[0] = 61.0
        assert visitor.get("/topics").status_code == 303
        visitor.run(visitor.console.sweep())
        assert visitor.console.visits.count == 0


def test_a_page_that_is_followed_ends_with_its_session(stranger: ConsoleVisitor) -> None:
    log_in(stranger, "ann", "secret", "PLAIN")

    def is_enough(events: list[Event]) -> bool:
        if len(events) == 1:
            stranger.console.sessions.log_out(stranger.client.cookies[stranger.console.cookie])
        return False

    events = stranger.events("/topics/shop/live/stream", is_enough)
    assert events[0].name == "records"
    assert events[-1].name == "failed"
    assert "log in again" in events[-1].data["sentence"]


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(stranger: ConsoleVisitor) -> None:
    cookie = log_in(stranger, "ann", "secret", "PLAIN").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_login_changes_the_number_in_the_cookie(stranger: ConsoleVisitor) -> None:
    stranger.get("//login/c")
    before = dict(stranger.client.cookies)
    log_in(stranger, "ann", "secret", "PLAIN")
    after = dict(stranger.client.cookies)
    assert before.keys() == after.keys()
    assert before != after
    stranger.client.cookies.clear()
    stranger.client.cookies.update(before)
    assert stranger.get("/topics").status_code == 303


def test_a_login_leads_to_no_other_site(stranger: ConsoleVisitor) -> None:
    answer = log_in(stranger, "ann", "secret", "PLAIN", "https://elsewhere.example/c/")
    assert answer.headers["location"] == "/c/c"


def test_a_form_without_its_token_does_nothing(visitor: ConsoleVisitor) -> None:
    for path in ("/create-topic", "/topics/shop.orders/change", "/groups/billing/reset", "//logout"):
        answer = visitor.post(path, {"token": "0" * 64, "name": "evil", "sure": "yes"})
        assert answer.status_code == 403, path
    other = visitor.another()
    answer = visitor.run(other.post("/c/c/create-topic", data={"token": visitor.token(), "name": "evil"}))
    assert answer.status_code == 403
    visitor.run(other.aclose())


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8088"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_others_get_nothing(visitor: ConsoleVisitor, headers: dict[str, str]) -> None:
    assert visitor.get("//api/c/c/topics", headers).status_code == 403
    given = {"token": visitor.token(), "name": "evil", "sure": "yes"}
    posted = visitor.run(visitor.client.post("/c/c/create-topic", data=given, headers=headers))
    assert posted.status_code == 403


def test_every_answer_has_the_policy(visitor: ConsoleVisitor) -> None:
    addresses = ("/topics", "/nowhere", "//api/c/c/topics", "//health", "//nowhere", "//static/nothing.js")
    for address in addresses:
        headers = visitor.get(address).headers
        assert headers["content-security-policy"] == POLICY, address
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY
    assert "'none'" in POLICY.partition("frame-ancestors")[2]


OPEN = ClusterSettings.of("open", {"bootstrap.servers": "a:1"})
CLOSED = ClusterSettings.of("closed", {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"})


@pytest.mark.parametrize(
    ("clusters", "http", "reason"),
    [
        ((OPEN,), HttpSettings(host="0.0.0.0"), "nobody has to log in"),
        ((CLOSED, OPEN), HttpSettings(host="0.0.0.0", is_insecure=True), "nobody has to log in"),
        ((CLOSED,), HttpSettings(host="0.0.0.0"), "passwords would be readable"),
    ],
)
def test_it_listens_on_this_machine_alone_unless_the_cluster_asks_for_logins(
    clusters: tuple[ClusterSettings, ...], http: HttpSettings, reason: str
) -> None:
    with pytest.raises(UnusableSettings, match=reason):
        ConsoleSettings(clusters, http).check()
    ConsoleSettings((CLOSED,), HttpSettings(host="0.0.0.0", is_insecure=True)).check()
    ConsoleSettings((OPEN,), HttpSettings()).check()


def test_the_settings_of_a_cluster_have_no_password() -> None:
    given = {"bootstrap.servers": "a:1", "sasl.username": "root", "sasl.password": "toor"}
    assert "toor" not in repr(ClusterSettings.of("c", given))


def test_the_cluster_decides_who_sees_and_changes_schemas(guarded: str) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    with ConsoleVisitor.of(guarded, nobody, **{"security.protocol": "SASL_PLAINTEXT"}) as looking:
        log_in(looking, "ann", "secret", "PLAIN")
        for path in ("/schemas", "/schemas/payroll-value", "/register-schema"):
            answer = looking.get(path)
            assert answer.status_code == 403, path
            assert "ann would need the right" in answer.text
        for path in ("/register-schema", "/schemas/payroll-value/delete"):
            assert looking.post(path, {"sure": "yes", "name": "payroll-value"}).status_code == 403
        looking.client = looking.another()
        log_in(looking, "root", "toor", "SCRAM-SHA-512")
        # That user is asked for: nothing but the registry is missing.
        answer = looking.get("/schemas")
        assert answer.status_code == 502
        assert "no schema registry answers" in answer.text


def test_the_cluster_decides_who_sees_connectors(guarded: str) -> None:
    worker = FakeWorker()
    with console_with(worker, guarded, **{"security.protocol": "SASL_PLAINTEXT"}) as looking:
        log_in(looking, "ann", "secret", "PLAIN")
        assert looking.get("/connectors").status_code == 403
        assert looking.get("/connectors/a%2Fb").status_code == 403
        assert looking.post("/connectors/a%2Fb/act", {"act": "restart"}).status_code == 403
        assert worker.orders == []
        looking.client = looking.another()
        log_in(looking, "root", "toor", "SCRAM-SHA-512")
        assert looking.get("/connectors").status_code == 200
