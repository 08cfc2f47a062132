"""Lets Spark find `format("ottla")`: it looks for modules named `pyspark_*` that have a `DefaultSource`."""

from ottla.pipelines.spark.data_source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
