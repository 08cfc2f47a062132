"""How many connections there may be, by configuration and by what the process can hold."""

from typing import Final

from ottla.metadata.configs.node import NodeConfig
from ottla.runtime.connections.listener import ConnectionLimits

HELD_BYTES_MAX: Final = 512 << 20
"""What connections may hold of unfinished frames when `queued.max.request.bytes` says nothing."""

NEVER_MS: Final = 1 << 62
"""Longer than any connection lives."""

SEND_BUFFER_BYTES: Final = 208 * 1024
"""Long answers take up to twice the CPU with the 100 KB that are Kafka's default."""
_UNCHOSEN_SEND_BUFFER_BYTES: Final = 102_400


def connection_limits(config: NodeConfig, connections_max: int) -> ConnectionLimits:
    """Return the limits on connections that the configuration sets, and what the process can hold."""
    overrides: dict[str, int] = {}
    for part in filter(None, config.max_connections_per_ip_overrides.split(",")):
        host, _, count = part.strip().rpartition(":")
        overrides[host] = int(count)
    held_bytes_max = config.queued_max_request_bytes
    idle_ms_max = config.connections_max_idle_ms
    return ConnectionLimits(
        connections_max=min(config.max_connections, connections_max),
        connections_per_ip_max=config.max_connections_per_ip,
        connections_per_ip_overrides=overrides,
        # As in Kafka, a negative time lets idle connections live.
        idle_ms_max=NEVER_MS if idle_ms_max < 0 else idle_ms_max,
        frame_bytes_max=config.socket_request_max_bytes,
        backlog=config.socket_listen_backlog_size,
        held_bytes_max=HELD_BYTES_MAX if held_bytes_max <= 0 else held_bytes_max,
        send_buffer_bytes=SEND_BUFFER_BYTES
        if config.socket_send_buffer_bytes == _UNCHOSEN_SEND_BUFFER_BYTES
        else config.socket_send_buffer_bytes,
    )
