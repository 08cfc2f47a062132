"""What configurations say about connections."""

import pytest

from ottla.broker.limits.connection_limits import NEVER_MS, SEND_BUFFER_BYTES, connection_limits
from ottla.metadata.configs.load import load_node_config


@pytest.mark.parametrize(
    ("said", "taken"),
    [(b"", SEND_BUFFER_BYTES), (b"102400", SEND_BUFFER_BYTES), (b"65536", 65_536), (b"-1", -1)],
)
def test_kafkas_default_send_buffer_counts_as_no_choice(said: bytes, taken: int) -> None:
    properties = b"socket.send.buffer.bytes=" + said if said else b""
    config = load_node_config(properties).config
    assert connection_limits(config, 1000).send_buffer_bytes == taken


@pytest.mark.parametrize(("said", "taken"), [(b"-1", NEVER_MS), (b"2000", 2000)])
def test_a_negative_idle_time_ends_no_connection(said: bytes, taken: int) -> None:
    config = load_node_config(b"connections.max.idle.ms=" + said).config
    assert connection_limits(config, 1000).idle_ms_max == taken
