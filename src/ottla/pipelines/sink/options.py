"""What can be said about a sink. Names that Spark's own Kafka sink has mean the same here."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.producer.settings import ProducerSettings
from ottla.client.properties import property_name
from ottla.model.topic_names import find_topic_name_fault
from ottla.pipelines.properties import InvalidOption, client_properties, common_properties

_NAMES: Final = ("topic", "pipeline", "write", "deliveryguarantee", "deadlettertopic", "includeheaders",
                 "batchid", "queryid", "runid", "checkpointlocation", "queryname", "path")  # fmt: skip
COLUMNS: Final = ("key", "value", "topic", "partition", "headers")
UNREADABLE: Final = "unreadable"
"""What the ledger for dead letters of the inputs is called, beside those of named writes."""
# As long as a broker lets a transaction be open, unless it is configured otherwise: a transaction of a task
# is open until all tasks of its batch are done.
_TRANSACTION_TIMEOUT_MS: Final = "900000"
# Rows come in thousands. Larger batches than Kafka's 16 KiB cost less on both sides.
_BATCH_BYTES: Final = "524288"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All that was said about a sink."""

    properties: Mapping[str, str]
    """What connecting takes."""
    producer: Mapping[str, str]
    """What producing takes, connecting included."""
    topic: str | None
    pipeline: str | None
    is_exactly_once: bool
    dead_letter_topic: str | None
    batch_id: int | None
    query_id: str | None
    run_id: str | None = None
    write: str | None = None
    """Which of several writes of a batch this is."""

    def settings(self, transactional_id: str | None) -> ProducerSettings:
        """Return the settings of a producer of this sink."""
        extra: dict[str, Any] = {} if transactional_id is None else {"transactional.id": transactional_id}
        return ProducerSettings.of({**self.producer, **extra})


def parse_sink_options(given: Mapping[str, str], *, is_streaming: bool) -> SinkOptions:
    """Read the options of a sink."""
    options = {name.lower(): value for name, value in given.items()}
    for name in options:
        if name not in _NAMES and not name.startswith("kafka."):
            raise InvalidOption(f"unknown option {name!r} for writing topics")
    properties = client_properties(given)
    producer_names = {property_name(item) for item in dataclasses.fields(ProducerSettings)}
    batch_id = options.get("batchid")
    default = "exactly-once" if is_streaming or batch_id is not None else "at-least-once"
    guarantee = options.get("deliveryguarantee", default)
    if guarantee not in ("exactly-once", "at-least-once"):
        raise InvalidOption(f"deliveryGuarantee is {guarantee!r}: it must be exactly-once or at-least-once")
    acks = properties.get("acks", "all")
    if guarantee == "exactly-once" and acks not in ("all", "-1"):
        raise InvalidOption(
            f"kafka.acks={acks} and delivering exactly once do not go together: set deliveryGuarantee to "
            "at-least-once, or leave out kafka.acks"
        )
    producer = {
        "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        "batch.size": _BATCH_BYTES,
        **{name: value for name, value in properties.items() if name in producer_names},
    }
    producer.pop("transactional.id", None)
    return SinkOptions(
        properties=common_properties(properties),
        producer=producer,
        topic=_topic(options, "topic"),
        pipeline=options.get("pipeline"),
        is_exactly_once=guarantee == "exactly-once",
        dead_letter_topic=_topic(options, "deadLetterTopic"),
        batch_id=None if batch_id is None else int(batch_id),
        query_id=options.get("queryid"),
        run_id=options.get("runid"),
        write=_write_name(options),
    )


def _write_name(options: Mapping[str, str]) -> str | None:
    name = options.get("write")
    # Other ledgers of a pipeline have names like these.
    if name is not None and (not name.isidentifier() or name == UNREADABLE):
        raise InvalidOption(
            f"write is {name!r}: it must be letters, digits and underscores, begin with a letter, and not be "
            f"{UNREADABLE!r}"
        )
    return name


def _topic(options: Mapping[str, str], option: str) -> str | None:
    name = options.get(option.lower())
    fault = None if name is None else find_topic_name_fault(name)
    if fault is not None:
        raise InvalidOption(f"{option}: {fault}")
    return name


_TYPES: Final = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


def check_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Raise unless these columns, of the types that Spark calls so, can be written."""
    names = list(types)
    if "value" not in names:
        raise InvalidOption('rows need a column "value" of strings or bytes')
    for name in names:
        if name not in COLUMNS:
            raise InvalidOption(f"unknown column {name!r}: use only {', '.join(COLUMNS)}")
        if types[name] not in _TYPES[name]:
            raise InvalidOption(
                f"column {name!r} is {types[name]}, and it has to be {' or '.join(_TYPES[name])}: convert it "
                f"with cast({name} AS {_TYPES[name][0].upper()})"
            )
    if topic is None and "topic" not in names:
        raise InvalidOption('no topic to write to: set the option "topic", or add a column "topic"')
