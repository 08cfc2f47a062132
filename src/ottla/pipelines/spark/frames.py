"""Inputs as DataFrames, and DataFrames as rows for the sink.

How values become columns is a *format*: `json`, `string` and `bytes` are here, others can be registered. A
value that cannot be read is not dropped and does not become nulls: it is a dead letter.

A plan of Spark is a tree: two frames that are made of one source read it twice. So dead letters are not a
frame of their own. The offsets of values that cannot be read are *observed*, as Spark calls it, while rows
pass. They arrive beside the result of a batch, and its delivery fetches those few records again.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name all of Spark's users know
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from ottla.pipelines.columns.misfits import TOMBSTONE_FAULT
from ottla.pipelines.definition import AS_COLUMN, AS_DEAD_LETTERS, DROPPED, InvalidPipeline, TopicInput
from ottla.pipelines.link import Link
from ottla.pipelines.sink.options import COLUMNS
from ottla.pipelines.sink.rows import ORIGINAL_TOPIC, REASON
from ottla.pipelines.source.decoding import DECODED, FAULT, JsonDecoding, decode_json, json_columns
from ottla.pipelines.source.options import parse_source_options
from ottla.pipelines.source.table import KEPT_RECORDS_MAX, count_records, read_table
from ottla.pipelines.spark.data_source import DECODING, RECORD_COLUMNS, decoded_columns
from ottla.pipelines.spark.session import is_remote
from ottla.schemas.errors import InvalidSchema

_RAW: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
TOMBSTONE: Final = "_tombstone"
_OBSERVED: Final = "ottla.unreadable."
_JSON_OPTIONS: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
REGISTRY: Final = "ottla.registry"
"""The option with the URL of a schema registry, and the format of topics that it knows."""


Explain = Callable[[bytes | None], str]


@dataclass(frozen=True)
class Decoded:
    """A decoder's work: the column of what was read, and that of why a value could not be read.

    `explain` says the same of a single value, in the driver.
    """

    value: Column
    fault: Column
    explain: Explain


@dataclass(frozen=True)
class ObservedInput:
    """An input whose values may turn out to be unreadable, and the name under which Spark tells which."""

    name: str
    declared: TopicInput
    explain: Explain


Decoder = Callable[[SparkSession, TopicInput], Decoded]
_decoders: dict[str, Decoder] = {}


def register_format(name: str, decoder: Decoder) -> None:
    """Add a format: a function that turns the column `value` of bytes into a struct."""
    _decoders[name] = decoder


class _JsonInput(NamedTuple):
    """How the values of a JSON topic become columns."""

    columns: StructType
    kind: pa.DataType
    decoding: JsonDecoding

    def decode(self, values: pa.Array) -> pa.Array:
        return decode_json(self.kind, self.decoding, values)

    @property
    def option(self) -> str:
        return self.decoding.to_text(self.columns.json())


def _json_input(spark: SparkSession, declared: TopicInput) -> _JsonInput:
    assert declared.schema is not None, "a JSON topic has a schema"
    columns = parse_schema(spark, declared.schema)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    decoding = JsonDecoding(declared.allow, zone, _tombstone_fault(declared))
    try:
        found = _JsonInput(columns, pa.struct(list(to_arrow_schema(columns, timezone="UTC"))), decoding)
        json_columns(found.kind, decoding)
    except (InvalidSchema, PySparkException) as error:
        raise InvalidPipeline(f"the schema of topic {declared.topic!r} cannot be used: {error}") from error
    return found


def _decode_json(spark: SparkSession, declared: TopicInput) -> Decoded:
    found = _json_input(spark, declared)
    return _decoded_by(found.decode, found.columns)


def _decoded_by(decode: Callable[[Any], Any], columns: StructType) -> Decoded:
    """Return the columns that a function makes of the column `value`, a batch at a time."""
    result = StructType([StructField("value", columns), StructField("fault", StringType())])
    # The stubs of PySpark know no structs here.
    make: Any = arrow_udf
    decoded = make(decode, result)(F.col("value"))
    return Decoded(decoded.getField("value"), decoded.getField("fault"), _explaining(decode))


def _explaining(decode: Callable[[Any], Any]) -> Explain:
    def explain(value: bytes | None) -> str:
        fault = decode(pa.array([value], pa.binary())).field("fault")[0].as_py()
        return str(fault or "the value could not be read")

    return explain


def _tombstone_fault(declared: TopicInput) -> str | None:
    is_letter = declared.tombstones == AS_DEAD_LETTERS and not declared.is_table
    return TOMBSTONE_FAULT if is_letter else None


def parse_schema(spark: SparkSession, text: str) -> StructType:
    """Read a schema as SQL has it: `id string, amount double`."""
    # Spark Connect has no parser on its own side, but frames with a schema.
    return spark.createDataFrame([], text).schema


def _with_registry(declared: TopicInput, url: str) -> TopicInput:
    """Return an input with the columns of its schema, if the registry has one for it."""
    from ottla.pipelines.columns.values import find_source

    if find_source(url, f"{declared.topic}-value") is None:
        return declared
    return replace(declared, format=REGISTRY, options={**declared.options, REGISTRY: url})


def _decode_registered(_spark: SparkSession, declared: TopicInput) -> Decoded:
    from ottla.pipelines.columns.values import decode_values, find_source, value_type

    subject = f"{declared.topic}-value"
    source = find_source(declared.options[REGISTRY], subject, declared.allow, _tombstone_fault(declared))
    if source is None:
        raise InvalidPipeline(f"the registry no longer has a schema for topic {declared.topic!r}")
    try:
        columns = from_arrow_type(value_type(source))
    except InvalidSchema as error:
        raise InvalidPipeline(f"the schema of topic {declared.topic!r} cannot be used: {error}") from error

    def decode(values: pa.Array) -> pa.Array:
        return decode_values(source, values)

    assert isinstance(columns, StructType), "values of a registry are records"
    return _decoded_by(decode, columns)


register_format("json", _decode_json)
register_format(REGISTRY, _decode_registered)


class FrameReader:
    """Reads the inputs of a pipeline, from one cluster."""

    def __init__(
        self, spark: SparkSession, options: Mapping[str, str], *, keeps_unreadable: bool = True
    ) -> None:
        self._spark = spark
        self._options = dict(options)
        self._keeps_unreadable = keeps_unreadable
        self.streams: list[TopicInput] = []
        """The inputs that are read as they grow."""
        self.observed: list[ObservedInput] = []
        """For each input that has a format which can fail: where the offsets of such values will be found."""
        self.corrupt: list[DataFrame] = []
        """For the same inputs: the values that cannot be read, as records. Using it reads the input again."""

    def read(self, declared: TopicInput) -> DataFrame:
        """Return an input as a stream, or as a table."""
        if declared.is_table:
            return self._read_table(declared)
        url = self._options.get(REGISTRY)
        if declared.asks_registry and url is not None:
            declared = _with_registry(declared, url)
        self.streams.append(declared)
        raw = self._load(declared, is_streaming=True)
        return self._decode(declared, raw)

    def _load(self, declared: TopicInput, *, is_streaming: bool) -> DataFrame:
        reader = self._spark.readStream if is_streaming else self._spark.read
        options = self._source_options(declared, is_streaming=is_streaming)
        if is_streaming and declared.format == "json":
            options[DECODING] = _json_input(self._spark, declared).option
        loaded: DataFrame = (
            reader.format("ottla").options(**options).option("subscribe", declared.topic).load()
        )
        return loaded

    def _source_options(self, declared: TopicInput, *, is_streaming: bool) -> dict[str, str]:
        options = {"kafka.isolation.level": "read_committed", **self._options, **declared.options}
        options.pop(REGISTRY, None)
        if is_streaming:
            options["startingOffsets"] = declared.starting
        else:
            options.pop("maxOffsetsPerTrigger", None)
        return options

    def _decode(self, declared: TopicInput, raw: DataFrame) -> DataFrame:
        has_terms = declared.allow or declared.tombstones != AS_DEAD_LETTERS
        if declared.format in ("bytes", "string") and has_terms:
            raise InvalidPipeline(
                f"topic {declared.topic!r} has no schema, so its values have no fields: leave out allow= and "
                "tombstones="
            )
        if declared.format == "bytes":
            return raw
        if declared.format == "string":
            return raw.withColumns({name: F.col(name).cast("string") for name in ("key", "value")})
        decoded = self._decoded(declared, raw)
        rows = raw.select(decoded.value.alias(DECODED), decoded.fault.alias(FAULT), *_meta_columns())
        if not raw.isStreaming or not self._keeps_unreadable:
            rows = rows.where(_or_fail(declared))
        else:
            self.corrupt.append(_as_dead_letters(raw, decoded.fault))
            observed = ObservedInput(f"{_OBSERVED}{len(self.observed)}", declared, decoded.explain)
            self.observed.append(observed)
            rows = rows.observe(observed.name, _offsets_of_faulty_rows()).where(F.col(FAULT).isNull())
        columns = [F.col(f"{DECODED}.*"), *(F.col(f"_{name}") for name in _RAW if name != "value")]
        is_tombstone = F.col(DECODED).isNull()
        if declared.tombstones == AS_COLUMN:
            return rows.select(*columns, is_tombstone.alias(TOMBSTONE))
        if declared.tombstones == DROPPED:
            rows = rows.where(~is_tombstone)
        return rows.select(*columns)

    def _decoded(self, declared: TopicInput, raw: DataFrame) -> Decoded:
        if DECODED not in raw.columns:
            return self._decoder(declared)(self._spark, declared)
        explain = _explaining(_json_input(self._spark, declared).decode)
        return Decoded(F.col(DECODED), F.col(FAULT), explain)

    def _read_table(self, declared: TopicInput) -> DataFrame:
        kept = self._kept_table(declared)
        if kept is not None:
            return self._decode(declared, kept)
        raw = self._load(replace(declared, is_table=False), is_streaming=False)
        latest = raw.groupBy("key").agg(
            F.max_by(F.struct(*_RAW), F.struct("timestamp", "offset")).alias("last")
        )
        # A null is a tombstone: its key is gone.
        return self._decode(declared, latest.select("last.*").where(F.col("value").isNotNull()))

    def _kept_table(self, declared: TopicInput) -> DataFrame | None:
        """Return a table that a worker keeps, unless it is too large for that.

        A frame of the data source is planned again for each batch, in processes that Spark starts for it, and
        reads all of the topic. A function that Spark calls in a worker costs neither.
        """
        if is_remote(self._spark):
            # The server may see brokers that this process does not.
            return None
        options = self._source_options(declared, is_streaming=False)
        columns = list(RECORD_COLUMNS)
        if declared.format == "json":
            found = _json_input(self._spark, declared)
            options[DECODING] = found.option
            columns += decoded_columns(found.columns.jsonValue())
        parsed = parse_source_options({**options, "subscribe": declared.topic}, is_streaming=False)
        link = Link(parsed.properties)
        try:
            if count_records(link, parsed) > KEPT_RECORDS_MAX:
                return None
        finally:
            link.close()
        schema = StructType(columns)
        arrow_schema = to_arrow_schema(schema, timezone="UTC")

        def rows(batches: Iterator[Any]) -> Iterator[Any]:
            for _ in batches:
                yield from read_table(parsed, arrow_schema)

        # One row in, the whole table out.
        return self._spark.range(0, 1, 1, 1).mapInArrow(rows, schema)

    def _decoder(self, declared: TopicInput) -> Decoder:
        decoder = _decoders.get(declared.format)
        if decoder is None:
            known = ", ".join(sorted([*_decoders, "bytes", "string"]))
            raise InvalidPipeline(
                f"topic {declared.topic!r}: unknown format {declared.format!r}: use one of {known}"
            )
        return decoder


def _or_fail(declared: TopicInput) -> Column:
    """Return a condition that is true, and fails the batch at a value that cannot be read."""
    advice = (
        "A table has no dead letters: write a value that fits under the same key"
        if declared.is_table
        else "Skip it, or give the pipeline a topic for dead letters"
    )
    what = F.concat(
        F.lit(f"{declared.topic}-"),
        F.col("_partition").cast("string"),
        F.lit(" has a value at offset "),
        F.col("_offset").cast("string"),
        F.lit(" that cannot be used: "),
        F.col(FAULT),
        F.lit(f". {advice}"),
    )
    return F.when(F.col(FAULT).isNotNull(), F.raise_error(what).cast("boolean")).otherwise(F.lit(True))


def _offsets_of_faulty_rows() -> Column:
    """Return `partition:offset,...` of all rows of a batch that could not be read, as one text."""
    place = F.concat(F.col("_partition").cast("string"), F.lit(":"), F.col("_offset").cast("string"))
    # Without `otherwise` a sound row gives null, and lists take no nulls.
    return F.concat_ws(",", F.collect_list(F.when(F.col(FAULT).isNotNull(), place))).alias("offsets")


def _meta_columns() -> list[Column]:
    """Return what a record has beside its value, under names that no schema is likely to have."""
    columns = [F.col(name).alias(f"_{name}") for name in _RAW if name not in ("key", "value")]
    return [F.col("key").cast("string").alias("_key"), *columns]


def _as_dead_letters(raw: DataFrame, fault: Column) -> DataFrame:
    def header(name: str, value: Column) -> Column:
        return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))

    corrupt = raw.withColumn(FAULT, fault).where(F.col(FAULT).isNotNull())
    return corrupt.select(
        "key",
        "value",
        F.array(
            header(REASON, F.col(FAULT)),
            header(ORIGINAL_TOPIC, F.col("topic")),
            header("ottla.partition", F.col("partition")),
            header("ottla.offset", F.col("offset")),
        ).alias("headers"),
    )


def to_rows(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return a DataFrame as rows for the sink: as they are if they look like it, else as keys and JSON."""
    types = {item.name: item.dataType for item in frame.schema.fields}
    is_ready = isinstance(types.get("value"), StringType | BinaryType) and types.keys() <= set(COLUMNS)
    if is_ready and not key:
        return frame
    _check_key(frame, key)
    value = F.col("value") if is_ready else _to_json(F.struct("*"))
    return frame.select(_key_column(key).alias("key"), value.alias("value"))


def to_registered_rows(frame: DataFrame, key: tuple[str, ...], topic: str, url: str) -> DataFrame:
    """Return a DataFrame as rows for the sink whose values are Avro. Their schema is registered."""
    from ottla.pipelines.columns.encoded_values import Unregistered, avro_schema, register_columns

    _check_key(frame, key)
    columns = pa.struct(list(to_arrow_schema(frame.schema, timezone="UTC")))
    try:
        schema = avro_schema(columns, re.sub(r"\W", "_", topic))
        schema_id = register_columns(url, topic, json.dumps(schema))
    except (InvalidSchema, Unregistered) as error:
        raise InvalidPipeline(str(error)) from error
    # The schema and its id are enough to write with, so workers need no registry.
    make: Any = arrow_udf
    encode = make(_encoding(schema, schema_id), BinaryType())
    return frame.select(_key_column(key).alias("key"), encode(F.struct("*")).alias("value"))


def _encoding(schema: dict[str, Any], schema_id: int) -> Callable[[pa.Array], pa.Array]:
    def encode(rows: pa.Array) -> pa.Array:
        from ottla.pipelines.columns.encoded_values import make_encoder

        return make_encoder(schema, schema_id)(rows)

    return encode


def _to_json(columns: Column) -> Column:
    """Return columns as JSON. Spark would write times without their microseconds, and leave out nulls."""
    return F.to_json(columns, _JSON_OPTIONS)


def _check_key(frame: DataFrame, key: tuple[str, ...]) -> None:
    missing = [name for name in key if name not in frame.columns]
    if missing:
        raise InvalidPipeline(
            f"there is no column {missing[0]!r} for the key: the columns are {', '.join(frame.columns)}"
        )


def _key_column(key: tuple[str, ...]) -> Column:
    if not key:
        return F.lit(None).cast("string")
    if len(key) == 1:
        return F.col(key[0]).cast("string")
    return _to_json(F.struct(*key))
