"""The coordinators of a node, each made when it is first needed.

A coordinator has nothing to do before its topic exists, which is made when a client first looks for it. Its
modules are a sixth of all that a node consists of, so a start without groups and transactions does not wait
for them.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from ottla.broker.coordinators.groups import Groups
    from ottla.broker.coordinators.hosted_coordinator import HostedCoordinator
    from ottla.broker.coordinators.shares import Shares
    from ottla.broker.coordinators.transactions import Transactions


class CoordinatorPlace:
    """Where a coordinator is, or will be."""

    def __init__(
        self, topic: str, key_type: int, name: str, broker: CoordinatorsNode, scheduler: Scheduler
    ) -> None:
        """`key_type` is how FindCoordinator names it. `name` is its class, in the module of that name."""
        self.topic = topic
        self.key_type = key_type
        self._name = name
        self._broker = broker
        self._scheduler = scheduler

    @property
    def is_made(self) -> bool:
        """Say whether the coordinator was needed so far."""
        return "hosted" in self.__dict__

    @cached_property
    def hosted(self) -> "HostedCoordinator[Any]":
        """The coordinator, made now if need be."""
        make = getattr(self.import_module(), self._name)
        hosted: HostedCoordinator[Any] = make(self._broker, self._scheduler)
        assert hosted.topic == self.topic, f"the topic of {self._name} is {hosted.topic}"
        return hosted

    def import_module(self) -> ModuleType:
        """Import what the coordinator consists of."""
        return import_module(f"{__package__}.{self._name.lower()}")

    def is_needed(self, image: MetadataImage) -> bool:
        """Say whether there is something to do: the topic exists, or somebody has asked."""
        return self.is_made or image.topics.find(self.topic) is not None

    def follow(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Let the coordinator follow the metadata, if there is one or has to be one."""
        if self.is_needed(image):
            self.hosted.metadata_changed(image, delta)


class Coordinators:
    """All coordinators, so that most of the node need not name them one by one."""

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self._groups = CoordinatorPlace("__consumer_offsets", 0, "Groups", broker, scheduler)
        self._transactions = CoordinatorPlace("__transaction_state", 1, "Transactions", broker, scheduler)
        self._shares = CoordinatorPlace("__share_group_state", 2, "Shares", broker, scheduler)

    def __iter__(self) -> Iterator[CoordinatorPlace]:
        return iter((self._groups, self._transactions, self._shares))

    @property
    def groups(self) -> "Groups":
        """The group coordinator."""
        return cast("Groups", self._groups.hosted)

    @property
    def transactions(self) -> "Transactions":
        """The transaction coordinator."""
        return cast("Transactions", self._transactions.hosted)

    @property
    def shares(self) -> "Shares":
        """The share coordinator."""
        return cast("Shares", self._shares.hosted)

    def start(self, image: MetadataImage) -> None:
        """Take over the partitions of the coordinators' topics that this node leads."""
        for place in self:
            if place.is_needed(image):
                place.hosted.start(image)

    def import_for(self, topics: Iterable[str]) -> None:
        """Import the coordinators that have new topics. A worker does so, while the loop serves others."""
        for place in self:
            if place.topic in topics:
                place.import_module()

    def write_out(self, topic: str, partition: int) -> None:
        """Have a coordinator write what it holds back: somebody else is about to append to its partition."""
        for place in self:
            if place.topic == topic and place.is_made:
                place.hosted.hosting.write_out(partition)

    def stop(self) -> None:
        """Tell those who wait that this node serves no more."""
        for place in self:
            if place.is_made:
                place.hosted.stop()
