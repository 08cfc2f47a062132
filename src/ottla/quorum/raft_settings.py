"""What the configuration of a node says about its quorum."""

from typing import Final

from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.quorum.raft.settings import RaftSettings
from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet, static_voter
from ottla.quorum.voters import Endpoint, VoterIdentity

FETCH_WAIT_MS_MAX: Final = 500


def raft_settings(config: NodeConfig, cluster_id: str, me: VoterIdentity) -> RaftSettings:
    """Return the settings of this node's replica. A node that is no controller can only observe."""
    listener = config.controller_listeners[0] if config.controller_listeners else me.endpoint.listener
    return RaftSettings(
        cluster_id=cluster_id,
        me=ReplicaKey(me.node_id, me.directory_id),
        endpoints=(me.endpoint,) if config.is_controller else (),
        listener=listener,
        bootstrap_servers=_bootstrap_servers(config),
        static_voters=static_voters(config, listener),
        can_become_voter=config.is_controller,
        auto_join=config.is_controller and config.controller_quorum_auto_join_enable,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        fetch_wait_ms_max=_fetch_wait_ms_max(config.controller_quorum_fetch_timeout_ms),
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        fetch_bytes_max=config.controller_quorum_fetch_max_bytes,
        fetch_snapshot_bytes_max=config.controller_quorum_fetch_snapshot_max_bytes,
    )


def _fetch_wait_ms_max(fetch_timeout_ms: int) -> int:
    """Return how long a fetch may wait for news.

    Deviation: Apache Kafka waits 500 ms whatever the timeout is. With a shorter timeout each voter would take
    a leader without news for one that is gone, so that the quorum would have another one all the time.
    """
    return min(FETCH_WAIT_MS_MAX, 2 * fetch_timeout_ms // 3)


def static_voters(config: NodeConfig, listener: str) -> VoterSet:
    """Return the voters of `controller.quorum.voters`, whose entries are `id@host:port`."""
    name, voters = "controller.quorum.voters", []
    for text in config.controller_quorum_voters:
        node_id, at, address = text.partition("@")
        if not at or not node_id.strip().isdecimal():
            raise InvalidConfig(name, text, "a voter is ID@HOST:PORT")
        host, port = _parse_address(name, address)
        voters.append(static_voter(int(node_id), Endpoint(listener, host, port)))
    return VoterSet.of(voters)


def _bootstrap_servers(config: NodeConfig) -> tuple[tuple[str, int], ...]:
    name = "controller.quorum.bootstrap.servers"
    return tuple([_parse_address(name, text) for text in config.controller_quorum_bootstrap_servers])


def _parse_address(name: str, text: str) -> tuple[str, int]:
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidConfig(name, text, "an address is HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
