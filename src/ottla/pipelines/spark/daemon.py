"""The process that Spark's Python workers are forked from, with everything loaded that they need.

Spark starts a worker for each task that finds none idle, and for each step of planning. A worker that has to
import Arrow, pandas and the client first spends about a second of CPU on it. Forked from here it has them.
The session names this module by `spark.python.daemon.module` where Spark runs inside our own process.
"""

import importlib
import sys

import pandas
import pyarrow.compute
from pyspark.daemon import manager

import pyspark_ottla

_PRELOADED = (pandas, pyarrow.compute, pyspark_ottla)

if __name__ == "__main__":
    for module in sys.argv[1:2]:
        # What the workers are for. Each would import it after the fork otherwise.
        importlib.import_module(module)
    manager()
