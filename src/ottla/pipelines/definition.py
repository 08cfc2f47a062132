"""What a pipeline is: frozen data, made by a decorator, to be looked at and tested without Spark.

    @pipeline("spend_per_minute", to="spend", mode="update", key="customer")
    def spend(orders=topic("orders", schema="customer string, amount double, ts timestamp")):
        return (orders.withWatermark("ts", "1 minute")
                      .groupBy(F.window("ts", "1 minute"), "customer")
                      .agg(F.sum("amount").alias("spent")))

The name of a pipeline names all that belongs to it: the consumer group that shows its progress, its
checkpoint, its ledger and its transactional ids. Parameters whose defaults are topics are its inputs: the
function gets a DataFrame for each. A topic may also be named inside the function.
"""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from ottla.model.topic_names import find_topic_name_fault

MODES: Final = ("append", "update", "complete")
VALUES: Final = ("json", "avro")
ALLOWANCES: Final = ("extra", "missing", "nanoseconds")
"""What a topic may allow: fields that its schema has not, fields that are missing, digits that are cut."""
AS_DEAD_LETTERS: Final = "dead letters"
DROPPED: Final = "dropped"
AS_COLUMN: Final = "column"
TOMBSTONES: Final = (AS_DEAD_LETTERS, DROPPED, AS_COLUMN)
"""What becomes of records without a value, where values have columns."""
AVAILABLE_NOW: Final = "available-now"
# As soon as the last batch is done.
CONTINUOUSLY: Final = "0 seconds"


class InvalidPipeline(ValueError):
    """A pipeline that cannot be: the sentence says what to change."""


@dataclass(frozen=True, slots=True)
class TopicInput:
    """A topic to read, and how its values become columns.

    With `is_table` it is read as a table: the latest value of each key, without keys whose latest is null.
    """

    topic: str
    format: str
    schema: str | None = None
    starting: str = "earliest"
    is_table: bool = False
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    asks_registry: bool = False
    """Whether its columns are those of its schema, if a registry knows one."""
    allow: tuple[str, ...] = ()
    tombstones: str = AS_DEAD_LETTERS

    def __post_init__(self) -> None:
        fault = find_topic_name_fault(self.topic)
        if fault is not None:
            raise InvalidPipeline(fault)
        for word in self.allow:
            if word not in ALLOWANCES:
                raise InvalidPipeline(
                    f"topic {self.topic!r} cannot allow {word!r}: use one of {', '.join(ALLOWANCES)}"
                )
        if self.tombstones not in TOMBSTONES:
            raise InvalidPipeline(
                f"unknown tombstones {self.tombstones!r} of topic {self.topic!r}: use one of "
                f"{', '.join(map(repr, TOMBSTONES))}"
            )
        if self.format == "json" and self.schema is None:
            raise InvalidPipeline(
                f"topic {self.topic!r} is JSON without a schema: "
                f'write topic("{self.topic}", schema="a int, ...")'
            )


@dataclass(frozen=True, slots=True)
class SparkSink:
    """A sink of Spark's own: files, tables, databases, whatever `writeStream.format` knows."""

    format: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    name: str = "sink"


@dataclass(frozen=True, slots=True)
class BatchSink:
    """A function that gets each batch as a DataFrame, with its number."""

    function: Callable[[Any, int], None]
    name: str = "batches"


Output = str | SparkSink | BatchSink


@dataclass(frozen=True, slots=True)
class PipelineDefinition:
    """A pipeline. Calling it calls its function, with DataFrames for its inputs."""

    name: str
    function: Callable[..., Any]
    inputs: Mapping[str, TopicInput]
    to: tuple[Output, ...]
    mode: str
    key: tuple[str, ...]
    trigger: str
    is_exactly_once: bool
    dead_letters: str | None
    options: Mapping[str, str]
    values: str = "json"

    def __call__(self, *frames: Any, **named: Any) -> Any:
        return self.function(*frames, **named)

    @property
    def queries(self) -> tuple[str, ...]:
        """Return the name of the query for each output: the pipeline's own, if there is only one."""
        if len(self.to) == 1:
            return (self.name,)
        return tuple(f"{self.name}.{output_name(output)}" for output in self.to)


def output_name(output: Output) -> str:
    """Return the name by which a function that has several outputs returns the DataFrame of this one."""
    return output if isinstance(output, str) else output.name


class Reader(Protocol):
    """What turns inputs into DataFrames while a pipeline is being built."""

    def read(self, declared: TopicInput) -> Any:
        """Return the DataFrame of an input."""


building: Final[ContextVar[Reader | None]] = ContextVar("building", default=None)


def topic(
    name: str,
    *,
    schema: str | None = None,
    format: str | None = None,  # noqa: A002 - the word that Spark has for it
    starting: str = "earliest",
    allow: str | tuple[str, ...] = (),
    tombstones: str = AS_DEAD_LETTERS,
    options: Mapping[str, str] | None = None,
) -> Any:
    """Declare a topic as an input: as a parameter's default, or inside the function of a pipeline.

    With a schema its values are JSON, unless `format` says otherwise. Without one its columns are those of
    the schema that the registry has for it, if there is a registry, and otherwise its values are strings.
    `starting` is where a new pipeline begins, as `startingOffsets` of the source. A value that a column
    cannot hold exactly is a dead letter. `allow` names what does not make it one: "extra" fields, "missing"
    fields, "nanoseconds" that are cut. `tombstones` says what records without a value become: "dead letters",
    "dropped", or rows of nulls with a "column" `_tombstone` that is true.
    """
    return _declared(
        TopicInput(
            name,
            _format(schema, format),
            schema,
            starting,
            False,
            _frozen(options),
            asks_registry=schema is None and format is None,
            allow=(allow,) if isinstance(allow, str) else tuple(allow),
            tombstones=tombstones,
        )
    )


def table(
    name: str,
    *,
    schema: str | None = None,
    format: str | None = None,  # noqa: A002
    allow: str | tuple[str, ...] = (),
    options: Mapping[str, str] | None = None,
) -> Any:
    """Declare a compacted topic as a table to join with: the latest value of each key, at each batch.

    A value that does not fit the schema, where that is the latest of its key, stops the pipeline: a table has
    no dead letters. Writing another value for this key lets it go on.
    """
    return _declared(
        TopicInput(
            name,
            _format(schema, format),
            schema,
            "earliest",
            True,
            _frozen(options),
            allow=(allow,) if isinstance(allow, str) else tuple(allow),
        )
    )


def spark_sink(
    format: str,  # noqa: A002 - the word that Spark has for it
    *,
    options: Mapping[str, str] | None = None,
    name: str = "sink",
) -> SparkSink:
    """Declare a sink of Spark's own as an output: `to=spark_sink("parquet", options={"path": "..."})`.

    What it promises about delivery is its own affair: files are written exactly once, a console is not.
    The name tells it from other outputs, if there are several.
    """
    return SparkSink(format, _frozen(options), name)


def foreach_batch(function: Callable[[Any, int], None], *, name: str = "batches") -> BatchSink:
    """Declare a function as an output: it is called with the DataFrame and the number of each batch.

    A batch that fails, or whose end Spark does not know, comes again under the same number. So the function
    is called at least once for each batch, and can tell by the number what it has done before.
    """
    return BatchSink(function, name)


def _declared(declared: TopicInput) -> Any:
    reader = building.get()
    return declared if reader is None else reader.read(declared)


def _format(schema: str | None, given: str | None) -> str:
    return given or ("string" if schema is None else "json")


def _frozen(options: Mapping[str, str] | None) -> Mapping[str, str]:
    return MappingProxyType(dict(options or {}))


def pipeline(
    name: str,
    *,
    to: Output | tuple[Output, ...],
    mode: str = "append",
    key: str | tuple[str, ...] = (),
    trigger: str = CONTINUOUSLY,
    exactly_once: bool = True,
    dead_letters: str | bool = True,
    values: str = "json",
    options: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Any]], PipelineDefinition]:
    """Make a pipeline of a function that returns a DataFrame, or a mapping of outputs to DataFrames.

    `to` is the topic, or the topics, that it writes; or a `spark_sink`, or a function by `foreach_batch`.
    `key` names the columns that make the key of a record.
    All columns make its value, as JSON, unless there is a column `value` of strings or bytes and nothing else
    than the sink's columns. With `values="avro"` they are Avro instead, with a schema that is registered
    under `<topic>-value` before the pipeline starts. `dead_letters` is the topic for what cannot be read or
    written, by default `<name>.dead_letters`; with False such a row stops the pipeline.
    """

    def decorate(function: Callable[..., Any]) -> PipelineDefinition:
        return PipelineDefinition(
            name=name,
            function=function,
            inputs=_inputs(function),
            to=outputs,
            mode=mode,
            key=(key,) if isinstance(key, str) else tuple(key),
            trigger=trigger,
            is_exactly_once=exactly_once,
            dead_letters=_dead_letters(name, dead_letters),
            options=_frozen(options),
            values=values,
        )

    outputs = to if isinstance(to, tuple) else (to,)
    _check(name, outputs, mode)
    if values not in VALUES:
        raise InvalidPipeline(
            f"unknown values {values!r} of pipeline {name!r}: use one of {', '.join(VALUES)}"
        )
    return decorate


def _dead_letters(name: str, given: str | bool) -> str | None:
    if isinstance(given, str):
        return given
    return f"{name}.dead_letters" if given else None


def _check(name: str, outputs: tuple[Output, ...], mode: str) -> None:
    if mode not in MODES:
        raise InvalidPipeline(f"unknown mode {mode!r} of pipeline {name!r}: use one of {', '.join(MODES)}")
    if not outputs:
        raise InvalidPipeline(f"pipeline {name!r} has no output: name a topic with to=")
    for output in outputs:
        if not isinstance(output, Output):
            raise InvalidPipeline(
                f"pipeline {name!r} cannot write to {output!r}: name a topic, or use spark_sink() or "
                "foreach_batch()"
            )
    names = [output_name(output) for output in outputs]
    for part in (name, *names):
        # A pipeline's name becomes part of the names of groups, topics and files.
        fault = find_topic_name_fault(part)
        if fault is not None:
            raise InvalidPipeline(f"pipeline {name!r}: {fault}")
    for part in names:
        if names.count(part) > 1:
            raise InvalidPipeline(
                f"pipeline {name!r} has two outputs named {part!r}: give one of them another name="
            )


def _inputs(function: Callable[..., Any]) -> Mapping[str, TopicInput]:
    inputs: dict[str, TopicInput] = {}
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.default, TopicInput):
            inputs[parameter.name] = parameter.default
        elif parameter.default is inspect.Parameter.empty:
            raise InvalidPipeline(
                f"parameter {parameter.name!r} of {function.__name__} is not an input: "
                f'write {parameter.name}=topic("...")'
            )
    return MappingProxyType(inputs)
