"""CreateTopics: topics are made, each on its own."""

from operator import attrgetter

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfAnswer, OfEach
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation, on_cluster, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse

ELEMENTS_MAX = 4 * RECORDS_MAX
"""Topics, configs, partitions and replicas together. Kafka creates no more than 10,000 partitions at once."""


def _creates_too_many(ask: CreateTopicsRequest) -> bool:
    """Say whether a request creates more partitions than one may: it is then refused as a whole."""
    partitions = sum(len(topic.assignments) or max(topic.num_partitions, 1) for topic in ask.topics)
    return partitions > RECORDS_MAX


def _without_configs(topic: CreatableTopicResult) -> CreatableTopicResult:
    """Hide what the client may not describe: the configs of a new topic are a right of their own."""
    if topic.error_code is not ErrorCode.NONE:
        return topic
    return replace(
        topic,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
    )


@serves(
    CreateTopicsRequest,
    "2-7",
    OfEach(
        on_topic(Operation.CREATE),
        "topics.name",
        "topics",
        unless=on_cluster(Operation.CREATE),
        says={"error_message": "Authorization failed."},
    ),
    OfAnswer(on_topic(Operation.DESCRIBE_CONFIGS), "topics.name", hide=_without_configs),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("topics", "topics", key=attrgetter("name"), is_whole=_creates_too_many),),
    elements_max=ELEMENTS_MAX,
)
def create_topics(ask: CreateTopicsRequest, context: RequestContext) -> Deferred[CreateTopicsResponse]:
    """Answer when the topics exist: their partitions can be written to at once."""
    return context.ask_controller(ask)
