"""What the coordinators ask of their node."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.basic_node import BasicNode
from ottla.broker.coordinators.producer_ids import ProducerIds
from ottla.broker.logs.partition import Partition
from ottla.broker.logs.partitions import Partitions
from ottla.broker.replication.replication import Replication

if TYPE_CHECKING:
    # Made when they are first needed: see `coordinators`.
    from ottla.broker.coordinators.groups import Groups
    from ottla.coordination.group.share.persister import StatePersister


class Member(Protocol):
    """The broker's session with the controller."""

    stands_until_ms: int

    def ask_whether_it_stands(self, tell: Callable[[], None]) -> None: ...


class CoordinatorJournal(Protocol):
    """Who notes what coordinators decide by themselves."""

    def note(self, subject: str, kind: str, **facts: Any) -> None: ...
    def member_lost(self, group_id: str, member_id: str, client_id: str, why: str, after_ms: int) -> None: ...


class CoordinatorsNode(BasicNode, Protocol):
    """A broker, as far as its coordinators know it."""

    @property
    def partitions(self) -> Partitions: ...
    @property
    def replication(self) -> Replication: ...
    @property
    def producer_ids(self) -> ProducerIds: ...
    @property
    def membership(self) -> Member: ...
    @property
    def journal(self) -> CoordinatorJournal: ...
    @property
    def groups(self) -> "Groups": ...
    @property
    def share_persister(self) -> "StatePersister": ...
    def changed(self, partition: Partition) -> None: ...
