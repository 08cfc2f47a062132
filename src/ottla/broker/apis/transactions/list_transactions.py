"""ListTransactions: the transactions whose coordinator this node is, by state, producer, age or pattern.

Deviation: the pattern is of RE2's syntax, which is linear in time. Kafka takes Java's, by which one request
can keep a broker busy for hours; the two agree but for look-around, back references and possessive matches.
"""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfAnswer
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.consumer.regexes import compile_regex
from ottla.coordination.group.refusal import Refused
from ottla.coordination.transaction.coordinator import Listing
from ottla.coordination.transaction.listing import Filters, unknown_states
from ottla.security.rights import Operation, on_transactional_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


@serves(
    ListTransactionsRequest,
    "0-2",
    OfAnswer(on_transactional_id(Operation.DESCRIBE), "transaction_states.transactional_id"),
)
def list_transactions(
    ask: ListTransactionsRequest, context: BrokerContext
) -> ListTransactionsResponse | Deferred[ListTransactionsResponse]:
    """List what passes all filters."""
    matches = None
    if ask.transactional_id_pattern:
        try:
            pattern = compile_regex(ask.transactional_id_pattern)
        except Refused:
            return _answer(ErrorCode.INVALID_REGULAR_EXPRESSION)

        def matches(name: str) -> bool:
            return pattern.fullmatch(name) is not None

    filters = Filters(
        frozenset(ask.state_filters), frozenset(ask.producer_id_filters), ask.duration_filter, matches
    )
    answer: Deferred[ListTransactionsResponse] = Deferred()
    unknown = unknown_states(ask.state_filters)

    def listed(listing: Listing) -> None:
        answer.resolve(
            ListTransactionsResponse(
                error_code=listing.error_code,
                unknown_state_filters=unknown if listing.error_code is ErrorCode.NONE else (),
                transaction_states=listing.transactions,
            )
        )

    context.broker.transactions.coordinator.list(filters, listed)
    return answer


def _answer(error_code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error_code, unknown_state_filters=(), transaction_states=())
