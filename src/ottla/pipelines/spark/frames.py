"""Inputs as DataFrames, and DataFrames as rows for the sink.

How values become columns is a *format*: `json`, `string` and `bytes` are here, others can be registered. A
value that cannot be read is not dropped and does not become nulls: it is a dead letter, kept apart in a frame
of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name all of Spark's users know
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from ottla.pipelines.definition import InvalidPipeline, TopicInput
from ottla.pipelines.sink.options import COLUMNS
from ottla.pipelines.sink.rows import ORIGINAL_TOPIC, REASON

_RAW: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
_CORRUPT: Final = "_corrupt"
_DECODED: Final = "_decoded"


@dataclass(frozen=True)
class Decoded:
    """A decoder's work: the column of what was read, and when a row could not be read."""

    value: Column
    is_corrupt: Column
    reason: str


Decoder = Callable[[SparkSession, TopicInput], Decoded]
_decoders: dict[str, Decoder] = {}


def register_format(name: str, decoder: Decoder) -> None:
    """Add a format: a function that turns the column `value` of bytes into a struct."""
    _decoders[name] = decoder


def _decode_json(spark: SparkSession, declared: TopicInput) -> Decoded:
    assert declared.schema is not None, "a JSON topic has a schema"
    fields = parse_schema(spark, declared.schema).fields
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    value = F.from_json(F.col("value").cast("string"), schema, options)
    return Decoded(
        value.dropFields(_CORRUPT), value.getField(_CORRUPT).isNotNull(), "not JSON of the schema given"
    )


def parse_schema(spark: SparkSession, text: str) -> StructType:
    """Read a schema as SQL has it: `id string, amount double`."""
    # Spark Connect has no parser on its own side, but frames with a schema.
    return spark.createDataFrame([], text).schema


register_format("json", _decode_json)


class FrameReader:
    """Reads the inputs of a pipeline, from one cluster."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._options = dict(options)
        self.corrupt: list[DataFrame] = []
        """For each input that has a format which can fail: the rows that could not be read, as records."""

    def read(self, declared: TopicInput) -> DataFrame:
        """Return an input as a stream, or as a table."""
        if declared.is_table:
            return self._read_table(declared)
        raw = self._load(declared, is_streaming=True)
        return self._decode(declared, raw)

    def _load(self, declared: TopicInput, *, is_streaming: bool) -> DataFrame:
        reader = self._spark.readStream if is_streaming else self._spark.read
        options = {"kafka.isolation.level": "read_committed", **self._options, **declared.options}
        if is_streaming:
            options["startingOffsets"] = declared.starting
        else:
            options.pop("maxOffsetsPerTrigger", None)
        loaded: DataFrame = (
            reader.format("ottla").options(**options).option("subscribe", declared.topic).load()
        )
        return loaded

    def _decode(self, declared: TopicInput, raw: DataFrame) -> DataFrame:
        if declared.format == "bytes":
            return raw
        if declared.format == "string":
            return raw.withColumns({name: F.col(name).cast("string") for name in ("key", "value")})
        decoded = self._decoder(declared)(self._spark, declared)
        sound = raw.where(~F.coalesce(decoded.is_corrupt, F.lit(False)))
        if raw.isStreaming:
            self.corrupt.append(_as_dead_letters(raw.where(decoded.is_corrupt), decoded.reason))
        return sound.select(decoded.value.alias(_DECODED), *_meta_columns()).select(
            f"{_DECODED}.*", *(f"_{name}" for name in _RAW if name != "value")
        )

    def _read_table(self, declared: TopicInput) -> DataFrame:
        raw = self._load(replace(declared, is_table=False), is_streaming=False)
        latest = raw.groupBy("key").agg(
            F.max_by(F.struct(*_RAW), F.struct("timestamp", "offset")).alias("last")
        )
        # A null is a tombstone: its key is gone.
        return self._decode(declared, latest.select("last.*").where(F.col("value").isNotNull()))

    def _decoder(self, declared: TopicInput) -> Decoder:
        decoder = _decoders.get(declared.format)
        if decoder is None:
            known = ", ".join(sorted([*_decoders, "bytes", "string"]))
            raise InvalidPipeline(
                f"topic {declared.topic!r}: there is no format {declared.format!r}, but {known}"
            )
        return decoder


def _meta_columns() -> list[Column]:
    """Return what a record has beside its value, under names that no schema is likely to have."""
    columns = [F.col(name).alias(f"_{name}") for name in _RAW if name not in ("key", "value")]
    return [F.col("key").cast("string").alias("_key"), *columns]


def _as_dead_letters(corrupt: DataFrame, reason: str) -> DataFrame:
    def header(name: str, value: Column) -> Column:
        return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))

    return corrupt.select(
        "key",
        "value",
        F.array(
            header(REASON, F.lit(reason)),
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
    missing = [name for name in key if name not in types]
    if missing:
        raise InvalidPipeline(f"there is no column {missing[0]!r} for the key, but {', '.join(types)}")
    value = F.col("value") if is_ready else F.to_json(F.struct("*"))
    return frame.select(_key_column(key).alias("key"), value.alias("value"))


def _key_column(key: tuple[str, ...]) -> Column:
    if not key:
        return F.lit(None).cast("string")
    if len(key) == 1:
        return F.col(key[0]).cast("string")
    return F.to_json(F.struct(*key))
