"""The audit log names who did what, holds no secrets, and counts what it leaves out."""

import json
import logging
from collections import Counter
from typing import Any

import pytest

from ottla.broker.authorization.audit import FORWARDED, LINES_PER_SECOND_MAX, LOGGER, NAMED_MAX, Audit
from ottla.security.principal import Principal
from ottla.security.rights import Operation, on_topic
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)


class FakeClock:
    def __init__(self) -> None:
        self.time_ms = 1_000_000

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms

    def monotonic_ns(self) -> int:
        return self.time_ms * 1_000_000


class FakeContext:
    principal = Principal("User", "mallory")
    host = "10.0.0.7"
    listener_name = "SASL_SSL"
    client_id = "c"
    login = "PLAIN"


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == LOGGER]


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> Audit:
    caplog.set_level(logging.INFO, LOGGER)
    return Audit(FakeClock(), 7)


CONTEXT: Any = FakeContext()


def test_a_denial_says_who_what_and_from_where(audit: Audit, caplog: pytest.LogCaptureFixture) -> None:
    audit.denied(CONTEXT, on_topic(Operation.WRITE), "payments")
    assert lines(caplog) == [
        {
            "time_ms": 1_000_000,
            "node": 7,
            "event": "denied",
            "principal": "User:mallory",
            "host": "10.0.0.7",
            "listener": "SASL_SSL",
            "client_id": "c",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "payments",
        }
    ]


def test_a_change_names_what_it_is_about_and_no_values(
    audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    password = b"a salted password"
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=4096, salt=b"salt", salted_password=password
    )
    audit.changed(CONTEXT, AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)))
    config = AlterableConfig(name="ssl.key.password", config_operation=0, value="a secret")
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=(config,))
    audit.changed(CONTEXT, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert [line["about"] for line in lines(caplog)] == [["alice"], ["1", "ssl.key.password"]]
    assert "salted" not in caplog.text
    assert "a secret" not in caplog.text


def other(name: str, login: str = "PLAIN") -> Any:
    class Other(FakeContext):
        principal = Principal("User", name)

    Other.login = login
    return Other()


RULES = DeleteAclsRequest(
    filters=(
        DeleteAclsFilter(
            resource_type_filter=2,
            resource_name_filter="payments",
            pattern_type_filter=3,
            principal_filter="User:alice",
            host_filter=None,
            operation=2,
            permission_type=3,
        ),
    )
)


def test_a_flood_hides_nothing_of_others_and_is_counted(
    audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(LINES_PER_SECOND_MAX + 70):
        audit.denied(CONTEXT, on_topic(Operation.READ), "t")
    audit.denied(other("alice"), on_topic(Operation.READ), "t")
    audit.logged_in(CONTEXT)
    audit._clock.time_ms += 1000  # type: ignore[attr-defined]
    audit.logged_in(CONTEXT)
    *flood, of_alice, login, left_out, later = lines(caplog)
    assert len(flood) == LINES_PER_SECOND_MAX
    assert of_alice["principal"] == "User:alice"
    assert (login["event"], later["event"]) == ("login", "login")
    assert (left_out["event"], left_out["who"]) == ("left out", "User:mallory")
    assert left_out["counts"] == {"denied": 70}
    assert audit.counts["denied"] == LINES_PER_SECOND_MAX + 71


def test_changes_of_rules_and_refused_passwords_are_never_left_out(
    audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3 * LINES_PER_SECOND_MAX):
        audit.changed(CONTEXT, RULES)
        audit.login_failed("10.0.0.7", "SASL", "wrong user or password", is_guess=True)
        audit.login_failed("10.0.0.7", "SASL", "no such mechanism", is_guess=False)
    written = Counter(line.get("reason", line["event"]) for line in lines(caplog))
    assert written == {
        "change": 3 * LINES_PER_SECOND_MAX,
        "wrong user or password": 3 * LINES_PER_SECOND_MAX,
        "no such mechanism": LINES_PER_SECOND_MAX,
    }


def test_what_was_left_out_is_counted_even_if_nothing_follows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    waiting: list[Any] = []

    def call_later(delay_ms: float, work: Any, *_: Any) -> Any:
        waiting.append((delay_ms, work))

    audit = Audit(FakeClock(), 7, call_later)
    for _ in range(LINES_PER_SECOND_MAX + 3):
        audit.logged_in(CONTEXT)
    ((delay_ms, work),) = waiting
    work()
    assert (delay_ms, lines(caplog)[-1]["counts"]) == (1000, {"login": 3})


def test_a_change_is_noted_once_and_not_where_it_was_forwarded_to(
    audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    audit.changed(other("alice"), RULES)
    audit.changed(other("alice", FORWARDED), RULES)
    assert [line["request"] for line in lines(caplog)] == ["DeleteAclsRequest"]


def test_what_was_denied_is_no_change(audit: Audit, caplog: pytest.LogCaptureFixture) -> None:
    audit.changed(CONTEXT, IncrementalAlterConfigsRequest(resources=(), validate_only=False))
    assert lines(caplog) == []


def test_the_memory_for_principals_is_bounded(audit: Audit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    for number in range(NAMED_MAX + 10):
        for _ in range(LINES_PER_SECOND_MAX + 1):
            audit._write("denied", f"User:{number}")
    audit.flush()
    assert lines(caplog)[-1]["who"] == "others"
    assert lines(caplog)[-1]["counts"] == {"denied": 10}
