"""What a decision is made from, and what it is.

    def decide_delete_topics(view: ControllerView, ask: DeleteTopicsRequest) -> Decision[DeleteTopicsResponse]

A decide function looks at its view and returns records and a reply. It changes nothing. The controller
appends the records as one batch, replays them, and gives the reply when the batch is committed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.features import is_elr_enabled, metadata_version_of
from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import Topic
from ottla.model.ids import Offset
from ottla.quorum.controller.brokers.sessions import NO_SESSIONS, BrokerSessions
from ottla.quorum.controller.settings import ControllerSettings
from ottla.security.principal import Principal
from ottla.wire.error_code import ErrorCode

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

RECORDS_MAX = 10_000
"""How many records one request may make, as in Kafka. What a broker's restart makes is not bounded by it."""


class Randomness(Protocol):
    """Where chance comes from. `random.Random` is one."""

    def randbytes(self, n: int) -> bytes:
        """Return `n` random bytes."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 up to below `stop`."""

    def shuffle(self, x: list[Any]) -> None:
        """Shuffle a list in place."""


class Refusal(Exception):
    """A request, or a part of it, that is not done. The message tells the client why."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error_code.name)
        self.error_code = error_code
        self.message = message


class Caller(NamedTuple):
    """The client that a request comes from. A request of a node itself has none."""

    principal: Principal
    client_id: str
    host: str
    version: int
    """The version of the API that the client speaks."""

    @property
    def user(self) -> str:
        """The name of the principal, as quotas know it."""
        return self.principal.name


Charge = Callable[[int], None]
"""Take note of partitions to be created or deleted. Raises `Refusal` if the client is over its quota."""


def free_of_charge(_partitions: int) -> None:
    """Allow any number of partitions."""


def _no_upgrade(_level: int) -> tuple[ErrorCode, str | None]:
    return ErrorCode.INVALID_UPDATE_VERSION, "The voters of this quorum cannot be made dynamic."


class ControllerView(NamedTuple):
    """Everything a decision may look at.

    The image contains what is appended, committed or not: of two requests to create the same topic, the
    second finds it there while the first still waits for its answer.
    """

    image: MetadataImage
    next_offset: Offset
    """Where the first record of this decision will lie: a broker's epoch is where its registration lies."""
    now_ms: int
    settings: ControllerSettings
    configs: EffectiveConfigs
    """What holds on the controller's own node, and so for topics without overrides."""
    random: Randomness
    kraft_version: int
    """The level of kraft.version, which the image does not have."""
    charge: Charge = free_of_charge
    """Called for partitions that are created or deleted."""
    sessions: BrokerSessions = NO_SESSIONS
    """When the controller heard from which broker, in monotonic time. Only to look at."""
    monotonic_ms: int = 0
    caller: Caller | None = None
    """The client that asks, if it is not a node."""
    find_upgrade_error: Callable[[int], tuple[ErrorCode, str | None]] = _no_upgrade
    """Says why kraft.version cannot be raised to a level, if it cannot."""

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version."""
        return metadata_version_of(self.image.features)

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept."""
        return is_elr_enabled(self.image.features)

    def min_insync_replicas(self, topic: Topic) -> int:
        """Return how many replicas have to be in sync, which cannot be more than there are."""
        asked = self.configs.topic(self.image.topic_config(topic.name)).min_insync_replicas
        return min(asked, len(topic.partitions[0].replicas)) if 0 in topic.partitions else asked

    def allows_unclean_election(self, topic: str) -> bool:
        """Say whether a topic prefers to lose records to being unavailable."""
        return self.configs.topic(self.image.topic_config(topic)).unclean_leader_election_enable


class Decision(NamedTuple, Generic[Reply]):
    """Records to append, and the reply for when they are committed."""

    reply: Reply
    records: Sequence[Any] = ()
    # The level of kraft.version to go to. It is in control records, which the quorum writes by itself.
    kraft_version: int | None = None


Decide = Callable[[ControllerView, Ask], Decision[Reply]]


def check_record_count(count: int) -> None:
    """Refuse what one request may not do at once."""
    if count > RECORDS_MAX:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation. "
            f"It would write {count} records at once, at most {RECORDS_MAX} are allowed.",
        )
