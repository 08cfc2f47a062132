"""`format("ottla")`: topics as a source and a sink of Spark, by options named as in Spark's own Kafka source.

Spark pickles these objects and runs their methods in processes of its own: plans on the driver's side, `read`
and `write` in Python workers. So they hold options only, and find their connections where they are.

Each step of planning is a process that has loaded nothing of ours, and most of them ask for the schema alone.
So nothing is imported before it is used. Importing all of it took a second of CPU, for each step.
"""

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from ottla.pipelines.sink.options import SinkOptions

RECORD_COLUMNS = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


DECODING = "ottla.decoding"


def decoded_columns(columns: dict[str, Any]) -> list[StructField]:
    """Return the columns of values that are decoded where they are read: what was read, or why it was not."""
    return [StructField("_decoded", StructType.fromJson(columns)), StructField("_fault", StringType())]


class OttlaDataSource(DataSource):
    """Topics of Ottla, or of any Kafka."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "ottla"

    def schema(self) -> StructType:
        """Return the columns of the source."""
        wants_headers = self.options.get("includeHeaders", "false").lower() == "true"
        headers = [StructField("headers", ArrayType(_HEADER))] if wants_headers else []
        decoding = self.options.get(DECODING)
        decoded = [] if decoding is None else decoded_columns(json.loads(decoding)["columns"])
        return StructType([*RECORD_COLUMNS, *headers, *decoded])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for a batch."""
        from ottla.pipelines.source.options import parse_source_options
        from ottla.pipelines.spark.reader import OttlaReader

        return OttlaReader(parse_source_options(self._given(), is_streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader for a stream."""
        from ottla.pipelines.properties import InvalidOption
        from ottla.pipelines.source.options import parse_source_options
        from ottla.pipelines.spark.reader import OttlaStreamReader, RefusedStreamReader

        try:
            return OttlaStreamReader(parse_source_options(self._given(), is_streaming=True), schema)
        except InvalidOption as error:
            return RefusedStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer for a batch."""
        from ottla.pipelines.spark.writer import OttlaWriter

        if overwrite:
            raise ValueError("a topic cannot be overwritten: use mode('append')")
        return OttlaWriter(self._sink_options(schema, is_streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, ARG002
        """Return a writer for a stream in append mode. For other modes use `foreachBatch`."""
        from ottla.pipelines.spark.writer import OttlaStreamWriter

        return OttlaStreamWriter(self._sink_options(schema, is_streaming=True))

    def _sink_options(self, schema: StructType, *, is_streaming: bool) -> "SinkOptions":
        from ottla.pipelines.sink.options import check_columns, parse_sink_options

        options = parse_sink_options(self._given(), is_streaming=is_streaming)
        check_columns({field.name: field.dataType.simpleString() for field in schema}, options.topic)
        return options

    def _given(self) -> dict[str, Any]:
        return dict(self.options)
