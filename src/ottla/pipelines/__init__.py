"""Data pipelines on Spark: topics in, topics out, with Kafka's promises kept.

    from ottla.pipelines import pipeline, table, topic

Importing this needs no Spark: a pipeline is declared as data. `ottla.pipelines.spark.runner` runs it.
"""

from ottla.pipelines.definition import (
    InvalidPipeline,
    PipelineDefinition,
    TopicInput,
    foreach_batch,
    pipeline,
    spark_sink,
    table,
    topic,
)

__all__ = [
    "InvalidPipeline",
    "PipelineDefinition",
    "TopicInput",
    "foreach_batch",
    "pipeline",
    "spark_sink",
    "table",
    "topic",
]
