"""DescribeTransactions: the state of transactional ids, as their coordinator knows it."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfAnswer, OfEach
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_topic, on_transactional_id
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


@serves(
    DescribeTransactionsRequest,
    "0",
    OfEach(on_transactional_id(Operation.DESCRIBE), "transactional_ids", "transaction_states"),
    OfAnswer(on_topic(Operation.DESCRIBE), "transaction_states.topics.topic"),
    cuts=(Cut("transactional_ids", "transaction_states"),),
)
def describe_transactions(
    ask: DescribeTransactionsRequest, context: BrokerContext
) -> Deferred[DescribeTransactionsResponse]:
    """Answer every id on its own."""
    return gather([_describe(name, context) for name in ask.transactional_ids]).then(
        lambda states: DescribeTransactionsResponse(transaction_states=tuple(states))
    )


def _describe(transactional_id: str, context: BrokerContext) -> Deferred[TransactionState]:
    answer: Deferred[TransactionState] = Deferred()
    context.broker.transactions.coordinator.describe(transactional_id, answer.resolve)
    return answer
