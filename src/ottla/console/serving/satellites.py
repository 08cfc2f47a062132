"""The servers beside the clusters of a console, one client for each, opened at the first look."""

from ottla.console.looks.satellites.schemas import Schemas
from ottla.console.settings import ClusterSettings


class Satellites:
    """All of them."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schemas] = {}

    def schemas(self, cluster: ClusterSettings) -> Schemas | None:
        """Return the registry of a cluster, if one is known."""
        if cluster.registry_url is None:
            return None
        if cluster.name not in self._schemas:
            self._schemas[cluster.name] = Schemas(cluster.registry_url)
        return self._schemas[cluster.name]

    def close(self) -> None:
        """Close all connections."""
        for one in self._schemas.values():
            one.close()
