"""A cluster in memory, as far as the commands of operators ask an admin client for it."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from ottla.client.admin.cluster import Broker
from ottla.client.admin.log_dirs import LogDir, ReplicaSize
from ottla.client.admin.replicas import ElectionType, Reassignment
from ottla.client.admin.results import Results
from ottla.client.admin.topics import PartitionDescription
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode


def broker(node_id: int, rack: str | None = None, *, is_fenced: bool = False) -> Broker:
    return Broker(node_id, f"h{node_id}", 9090 + node_id, rack, is_fenced)


def partition(number: int, replicas: tuple[int, ...], **facts: Any) -> PartitionDescription:
    told: dict[str, Any] = {"leader": replicas[0], "in_sync": replicas, "eligible": None, **facts}
    return PartitionDescription(
        number, told["leader"], 0, replicas, told["in_sync"], (), told["eligible"], None
    )


class Operated:
    """Brokers and partitions. What is done to them is noted in `did`."""

    def __init__(
        self, brokers: tuple[Broker, ...], topics: Mapping[str, tuple[PartitionDescription, ...]]
    ) -> None:
        self.brokers = brokers
        self.held = dict(topics)
        self.min_in_sync: dict[str, str] = {}
        self.sizes: dict[TopicPartition, list[tuple[int, int]]] = {}
        """For each partition its brokers, with bytes."""
        self.did: list[tuple[Any, ...]] = []
        self.moving: dict[TopicPartition, Reassignment] = {}
        self.looks_until_moved = 1
        self.refuses: dict[TopicPartition, ClientError] = {}
        self.directory_facts: dict[int, dict[str, Any]] = {}
        named = SimpleNamespace
        self.admin: Any = named(
            cluster=named(describe=self._describe_cluster),
            topics=named(
                list=self._list_topics, describe_many=self._describe_many, describe=self._describe_topic
            ),
            configs=named(describe_many=self._describe_configs, alter_many=self._alter_configs),
            log_dirs=named(describe=self._describe_directories),
            replicas=named(reassignments=self._reassignments, reassign=self._reassign, elect=self._elect),
        )

    def with_admin(self, _properties: Any, work: Callable[[Any], Any]) -> Any:
        """Do what a command asks an admin client for."""

        async def run() -> Any:
            return await work(self.admin)

        return asyncio.run(run())

    async def _describe_cluster(self, *, fenced: bool = False) -> Any:
        shown = tuple(one for one in self.brokers if fenced or not one.is_fenced)
        return SimpleNamespace(cluster_id="c", controller=1, brokers=shown)

    async def _list_topics(self, *, internal: bool) -> list[Any]:
        assert internal, "a broker is not empty while it holds internal topics"
        return [SimpleNamespace(name=name) for name in self.held]

    async def _describe_many(self, names: list[str]) -> Any:
        return Results({name: SimpleNamespace(name=name, partitions=self.held[name]) for name in names})

    async def _describe_topic(self, name: str) -> Any:
        return SimpleNamespace(
            topic_partitions=[TopicPartition(name, one.partition) for one in self.held[name]]
        )

    async def _describe_configs(self, resources: Any, *, keys: list[str], synonyms: bool) -> Any:
        assert (keys, synonyms) == (["min.insync.replicas"], False)
        return Results(
            {
                resource: {keys[0]: SimpleNamespace(value=self.min_in_sync[resource.name])}
                if resource.name in self.min_in_sync
                else {}
                for resource in resources
            }
        )

    async def _alter_configs(self, changes: Any) -> Any:
        for resource, each in changes.items():
            for change in each:
                self.did.append((resource.name, change.name, change.operation.name, change.value))
        return Results(dict.fromkeys(changes))

    async def _describe_directories(self) -> Any:
        found = {}
        for one in self.brokers:
            replicas = tuple(
                ReplicaSize(where, size, 0, False)
                for where, held in self.sizes.items()
                for node_id, size in held
                if node_id == one.node_id
            )
            facts = {"error_code": ErrorCode.NONE, "is_cordoned": False} | self.directory_facts.get(
                one.node_id, {}
            )
            found[one.node_id] = (
                LogDir("/data", facts["error_code"], -1, -1, facts["is_cordoned"], replicas),
            )
        return Results(found)

    async def _reassignments(self, partitions: Any = None) -> dict[TopicPartition, Reassignment]:
        shown = {
            where: one for where, one in self.moving.items() if partitions is None or where in partitions
        }
        if partitions is not None:
            self.did.append(("look", len(shown)))
            self.looks_until_moved -= 1
            if self.looks_until_moved <= 0:
                self.moving.clear()
        return shown

    async def _reassign(self, targets: Any) -> Any:
        self.did.append(("reassign", dict(targets)))
        for where, after in targets.items():
            if after is not None:
                self.moving[where] = Reassignment(tuple(after), (), ())
        return Results({where: self.refuses.get(where) for where in targets})

    async def _elect(self, partitions: Any, kind: ElectionType = ElectionType.PREFERRED) -> Any:
        self.did.append(("elect", kind.name, None if partitions is None else list(partitions)))
        asked = self.sizes if partitions is None else partitions
        return Results({where: self.refuses.get(where, where.partition == 0) for where in asked})
