"""CreatePartitions: topics get more partitions."""

from operator import attrgetter

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation, on_topic
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


def _creates_too_many(ask: CreatePartitionsRequest) -> bool:
    """Say whether a request may create more partitions than one request can. Which are refused depends."""
    return sum(max(topic.partition_count, 1) for topic in ask.topics) > RECORDS_MAX


@serves(
    CreatePartitionsRequest,
    "0-3",
    OfEach(on_topic(Operation.ALTER), "topics.name", "results"),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("topics", "results", key=attrgetter("name"), is_whole=_creates_too_many),),
    elements_max=4 * RECORDS_MAX,
)
def create_partitions(
    ask: CreatePartitionsRequest, context: RequestContext
) -> Deferred[CreatePartitionsResponse]:
    """Answer when the partitions exist."""
    return context.ask_controller(ask)
