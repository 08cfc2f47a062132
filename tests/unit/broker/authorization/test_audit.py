"""The audit log names who did what, holds no secrets, and counts what it leaves out."""

import json
import logging
from typing import Any

import pytest

from ottla.broker.authorization.audit import LINES_PER_SECOND_MAX, LOGGER, Audit
from ottla.security.principal import Principal
from ottla.security.rights import Operation, on_topic
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
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


def test_what_is_left_out_is_counted(audit: Audit, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(LINES_PER_SECOND_MAX + 50):
        audit.login_failed("10.0.0.7", "SASL", "wrong")
    audit.denied(CONTEXT, on_topic(Operation.READ), "t")
    audit._clock.time_ms += 1000  # type: ignore[attr-defined]
    audit.logged_in(CONTEXT)
    written = lines(caplog)
    assert len(written) == LINES_PER_SECOND_MAX + 2
    assert written[-2]["counts"] == {"login failed": 50, "denied": 1}
    assert written[-1]["event"] == "login"
    assert audit.counts["login failed"] == LINES_PER_SECOND_MAX + 50
