"""Four APIs of the ZooKeeper era. No version of them is valid: only their keys stay reserved."""

from ottla.wire.declare import message


@message(api_key=4, versions="none")
class LeaderAndIsrRequest:
    """API key 4, removed: leaders and in-sync replicas now come from the metadata log."""


@message(api_key=4, versions="none")
class LeaderAndIsrResponse:
    """The answer of a removed API: no version of it is valid."""


@message(api_key=5, versions="none")
class StopReplicaRequest:
    """API key 5, removed: brokers now learn from the metadata log which replicas to drop."""


@message(api_key=5, versions="none")
class StopReplicaResponse:
    """The answer of a removed API: no version of it is valid."""


@message(api_key=6, versions="none")
class UpdateMetadataRequest:
    """API key 6, removed: brokers now read the cluster's metadata from the metadata log."""


@message(api_key=6, versions="none")
class UpdateMetadataResponse:
    """The answer of a removed API: no version of it is valid."""


@message(api_key=7, versions="none")
class ControlledShutdownRequest:
    """API key 7, removed: brokers now announce their shutdown in BrokerHeartbeat."""


@message(api_key=7, versions="none")
class ControlledShutdownResponse:
    """The answer of a removed API: no version of it is valid."""
