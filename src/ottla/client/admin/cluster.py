"""The cluster itself: its brokers, the features that are on, and the API versions each broker serves."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.access_rules import Operation
from ottla.client.admin.routes import Routes
from ottla.client.connection import SOFTWARE_NAME, SOFTWARE_VERSION
from ottla.client.errors import UnsupportedByBroker, raise_for
from ottla.wire.apis import ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.versions import Versions

_UPGRADE = 1
_SAFE_DOWNGRADE = 2
_UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker. A fenced one is registered but not serving."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster. Under KRaft `controller` is a broker that hands requests on to the controller."""

    cluster_id: str | None
    controller: int
    brokers: tuple[Broker, ...]


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: the level that is on (0: it is off), and the levels the broker could have."""

    name: str
    finalized: int
    supported: Versions


class ClusterInfo:
    """The cluster and its brokers."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(self, *, fenced: bool = False) -> ClusterDescription:
        """Describe the cluster; with `fenced` brokers that are registered but down as well (Kafka 4.0)."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=fenced
        )
        try:
            answer = await self._routes.ask_any(request)
        except UnsupportedByBroker:
            return await self._describe_by_metadata()
        raise_for(answer.error_code, "cannot describe the cluster", answer.error_message)
        brokers = (
            Broker(item.broker_id, item.host, item.port, item.rack, item.is_fenced) for item in answer.brokers
        )
        return ClusterDescription(
            answer.cluster_id,
            answer.controller_id,
            tuple(sorted(brokers, key=lambda broker: broker.node_id)),
        )

    async def authorized_operations(self) -> frozenset[Operation]:
        """Return what this client may do with the cluster as a whole."""
        answer = await self._routes.ask_any(
            DescribeClusterRequest(include_cluster_authorized_operations=True)
        )
        raise_for(answer.error_code, "cannot describe the cluster", answer.error_message)
        told = answer.cluster_authorized_operations
        # A broker that was not asked, or knows of no rights, sets the sign alone.
        return frozenset(one for one in Operation if told > 0 and told >> one & 1)

    async def features(self) -> dict[str, Feature]:
        """Return the features that some broker knows, by name."""
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        answer = await self._routes.ask_any(request)
        raise_for(answer.error_code, "cannot read the features")
        finalized = {item.name: item.max_version_level for item in answer.finalized_features}
        return {
            item.name: Feature(
                item.name, finalized.get(item.name, 0), Versions(item.min_version, item.max_version)
            )
            for item in sorted(answer.supported_features, key=lambda item: str(item.name))
        }

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        downgrade: bool = False,
        unsafe: bool = False,
        validate_only: bool = False,
    ) -> None:
        """Set features to levels. Lower ones need `downgrade`; `unsafe` allows one that may lose metadata."""
        kind = _UPGRADE if not downgrade else _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE
        request = UpdateFeaturesRequest(
            timeout_ms=self._routes.request_timeout_ms,
            feature_updates=tuple(
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                for name, level in levels.items()
            ),
            validate_only=validate_only,
        )
        answer = await self._routes.ask_controller(
            request, lambda found: (found.error_code,), repeatable=validate_only
        )
        raise_for(answer.error_code, "cannot update features", answer.error_message)
        for item in answer.results:
            raise_for(item.error_code, f"cannot update feature {item.feature}", item.error_message)

    async def api_versions(self, node_id: int | None = None) -> dict[str, Versions]:
        """Return which versions of each API a broker serves, by the API's name."""
        cluster = self._routes.cluster
        connection = await (cluster.any_connection() if node_id is None else cluster.connection(node_id))
        return {_api_name(key): versions for key, versions in sorted(connection.versions.items())}

    async def unregister(self, node_id: int) -> None:
        """Let the cluster forget a broker that will not come back."""
        request = UnregisterBrokerRequest(broker_id=node_id)
        answer = await self._routes.ask_controller(request, lambda found: (found.error_code,))
        raise_for(answer.error_code, f"cannot unregister broker {node_id}", answer.error_message)

    async def _describe_by_metadata(self) -> ClusterDescription:
        answer = await self._routes.ask_any(MetadataRequest(topics=(), allow_auto_topic_creation=False))
        brokers = (Broker(item.node_id, item.host, item.port, item.rack, False) for item in answer.brokers)
        return ClusterDescription(
            answer.cluster_id,
            answer.controller_id,
            tuple(sorted(brokers, key=lambda broker: broker.node_id)),
        )


def _api_name(key: int) -> str:
    return ApiKey(key).name if key in _API_KEYS else f"UNKNOWN({key})"


_API_KEYS = frozenset(ApiKey)
