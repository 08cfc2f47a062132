"""Answers to Metadata requests, made once for each image and kept encoded.

Clients of one kind ask the same question again and again, and an answer for 1,000 partitions takes 1 ms to
make. An answer stays right as long as topics and brokers of the image are the very same objects. It also
depends on the address the client connected to, since that is the address it is told.
"""

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.handlers import EncodedResponse
from ottla.metadata.image import MetadataImage
from ottla.wire.codec import encode
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from ottla.broker.context import RequestContext

BYTES_MAX: Final = 16 << 20
"""How much memory the answers may take. An answer larger than that is not kept."""


class MetadataAnswers:
    """The answers that were asked for since the metadata last changed."""

    def __init__(self) -> None:
        self._topics: object = None
        self._brokers: object = None
        self._size_bytes = 0
        self._answers: dict[Any, EncodedResponse] = {}

    def find(self, ask: MetadataRequest, context: "RequestContext") -> EncodedResponse | None:
        """Return the answer to a request that was answered before."""
        image: MetadataImage = context.broker.image
        if image.topics is not self._topics or image.brokers is not self._brokers:
            self._topics, self._brokers = image.topics, image.brokers
            self._answers.clear()
            self._size_bytes = 0
        return self._answers.get(_key(ask, context))

    def keep(
        self, ask: MetadataRequest, context: "RequestContext", response: MetadataResponse
    ) -> EncodedResponse:
        """Encode an answer, and keep it if there is room."""
        encoded = EncodedResponse(encode(response, context.version))
        if self._size_bytes + len(encoded.body) <= BYTES_MAX:
            self._size_bytes += len(encoded.body)
            self._answers[_key(ask, context)] = encoded
        return encoded


def _key(ask: MetadataRequest, context: "RequestContext") -> Any:
    return ask, context.version, context.listener_name, context.local_host, context.local_port
