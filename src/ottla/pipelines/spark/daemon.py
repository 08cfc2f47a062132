"""The process that Spark's Python workers are forked from, with everything loaded that they need.

Spark starts a worker for each task that finds none idle. A worker that has to import Arrow, pandas and the
client first spends about a second of CPU on it. Forked from here it has them. The session names this module
by `spark.python.daemon.module` where Spark runs inside our own process. It has no say in what the processes
that plan are forked from.
"""

import gc
import importlib
import sys

import pandas
import pyarrow.compute
from pyspark.daemon import manager

import ottla.pipelines.sink.task
import ottla.pipelines.source.read
import ottla.pipelines.source.table
import ottla.pipelines.spark.reader
import ottla.pipelines.spark.writer
import pyspark_ottla

_PRELOADED = (
    pandas,
    pyarrow.compute,
    pyspark_ottla,
    ottla.pipelines.source.read,
    ottla.pipelines.source.table,
    ottla.pipelines.spark.reader,
    ottla.pipelines.sink.task,
    ottla.pipelines.spark.writer,
)

if __name__ == "__main__":
    for module in sys.argv[1:2]:
        # What the workers are for. Each would import it after the fork otherwise.
        importlib.import_module(module)
    # A worker collects garbage after each task, and would go through all that was loaded here each time. That
    # was 60 % of the CPU of workers with small batches. What is frozen is left out, and stays shared.
    gc.collect()
    gc.freeze()
    manager()
