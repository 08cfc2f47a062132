"""Clients are described as Kafka describes them."""

import pytest

from ottla.broker.coordinators.clients import host_text


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "/2001:db8:0:0:0:ff00:42:8329"),
        ("::ffff:10.1.2.3", "/10.1.2.3"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1"),
        ("somewhere", "/somewhere"),
    ],
)
def test_addresses_are_written_as_java_writes_them(address: str, expected: str) -> None:
    assert host_text(address) == expected
