"""Each setting of each client is read by that client, and what would be in vain is refused or told."""

import ast
import dataclasses
import logging
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import ottla.client
from ottla.client.admin.settings import AdminSettings
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.producer.settings import ProducerSettings
from ottla.client.properties import CommonSettings, InvalidProperty, property_name
from ottla.client.share.settings import ShareConsumerSettings

_ROOT: Final = Path(ottla.client.__file__).parent
ROOMS: Final[dict[type[CommonSettings], tuple[str, ...]]] = {
    ProducerSettings: ("producer",),
    ConsumerSettings: ("consumer",),
    ShareConsumerSettings: ("share", "consumer/heartbeats.py"),
    AdminSettings: ("admin",),
}
# What all clients read: connections, logins, retries.
COMMON: Final = ("security.py", "bearer_tokens.py")


def _modules(*places: str) -> Iterator[Path]:
    for place in places:
        path = _ROOT / place
        yield from path.rglob("*.py") if path.is_dir() else (path,)


@cache
def _read_in(*places: str) -> set[str]:
    return {
        node.attr
        for path in _modules(*places)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, item.name) for kind in ROOMS for item in dataclasses.fields(kind)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_each_setting_is_read_by_its_client(kind: type[CommonSettings], name: str) -> None:
    assert name in _read_in(*ROOMS[kind], *COMMON), f"{name} of {kind.__name__} does nothing"


@pytest.mark.parametrize("kind", ROOMS)
def test_each_number_has_bounds_and_says_so(kind: type[CommonSettings]) -> None:
    given: dict[str, Any] = {"bootstrap_servers": "a:1", "group_id": "g"}
    if kind in (ProducerSettings, AdminSettings):
        del given["group_id"]
    for item in dataclasses.fields(kind):
        low, high = item.metadata["low"], item.metadata["high"]
        if not isinstance(item.default, int) or isinstance(item.default, bool):
            continue
        name = property_name(item)
        for wrong in (low - 1, high + 1):
            with pytest.raises(InvalidProperty, match=f"{name} is {wrong}: it must be at"):
                kind.of({**given, item.name: wrong})
        for wrong_kind in ("soon", float("nan"), 1.5, True, None, [1]):
            with pytest.raises(InvalidProperty, match=f"{name} is .*: it must be a whole number"):
                kind.of({**given, item.name: wrong_kind})


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ProducerSettings, {"compression_gzip_level": 0}, "it must be -1, or from 1 to 9"),
        (ProducerSettings, {"acks": "1", "enable_idempotence": True}, "acks is 1: leave one of them out"),
        (ConsumerSettings, {"enable_auto_commit": True}, "enable.auto.commit needs a group.id"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    kind: type[CommonSettings], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidProperty, match=message):
        kind.of({"bootstrap_servers": "a:1", **settings})


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (AdminSettings, {"sasl_password": "x"}, "sasl.password has no effect.*security.protocol=PLAINTEXT"),
        (AdminSettings, {"ssl_ca_location": "x"}, "ssl.ca.location has no effect"),
        (
            AdminSettings,
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_username": "u"},
            "sasl.username has no effect.*sasl.mechanism=OAUTHBEARER",
        ),
        (
            AdminSettings,
            {"security_protocol": "SASL_SSL", "sasl_oauthbearer_scope": "s"},
            "sasl.oauthbearer.scope has no effect.*sasl.mechanism=PLAIN",
        ),
        (ProducerSettings, {"compression_zstd_level": 3}, "compression.zstd.level.*compression.type=none"),
        (ProducerSettings, {"transaction_timeout_ms": 5}, "transaction.timeout.ms.*no transactional.id"),
        (ConsumerSettings, {"session_timeout_ms": 9_000}, "session.timeout.ms.*no group.id"),
        (
            ConsumerSettings,
            {"group_id": "g", "enable_auto_commit": False, "auto_commit_interval_ms": 5},
            "auto.commit.interval.ms.*enable.auto.commit=false",
        ),
    ],
)
def test_what_has_no_effect_is_told(
    kind: type[CommonSettings], settings: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        kind.of({"bootstrap_servers": "a:1", **settings})
    [record] = caplog.records
    assert re.search(message, record.getMessage())


def test_what_has_an_effect_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        AdminSettings.of(
            {
                "bootstrap_servers": "a:1",
                "security_protocol": "SASL_SSL",
                "sasl_username": "u",
                "sasl_password": "p",
                "ssl_ca_location": "ca",
            }
        )
        ProducerSettings.of(
            {
                "bootstrap_servers": "a:1",
                "transactional_id": "t",
                "transaction_timeout_ms": 9,
                "compression_type": "zstd",
                "compression_zstd_level": 3,
            }
        )
        ConsumerSettings.of({"bootstrap_servers": "a:1", "group_id": "g", "session_timeout_ms": 9_000})
    assert not caplog.records
