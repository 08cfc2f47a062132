"""What Spark's Java, its workers and its libraries say goes to a file, and errors name it.

Otherwise the lines that people wait for would be lost between thousands of others.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

LOG_NAME: Final = "spark.log"
_TALKATIVE: Final = ("py4j", "pyspark", "py.warnings")


class SparkEnded(Exception):
    """Spark is gone, or never came. The sentence says where to look, and what to do."""


@contextlib.contextmanager
def children_speak_in(path: Path) -> Iterator[None]:
    """Let processes that start meanwhile print to a file. The file of the run before is kept."""
    _begin(path)
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in kept:
            os.dup2(file, number)
        yield
    finally:
        for number, own in kept:
            os.dup2(own, number)
            os.close(own)
        os.close(file)


@contextlib.contextmanager
def libraries_speak_in(path: Path) -> Iterator[None]:
    """Let Spark's libraries in this process write their warnings and tracebacks to a file."""
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, propagates in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagates
        handler.close()


def log_lost_accumulators(server: Any) -> None:
    """Let the server of Spark's accumulators log what goes wrong: it prints a traceback when Java ends."""

    def handle_error(_request: Any, address: Any) -> None:
        logging.getLogger("pyspark.accumulators").warning("lost %s", address, exc_info=True)

    server.handle_error = handle_error


def _begin(path: Path) -> None:
    if path.exists():
        path.replace(path.with_suffix(".log.1"))
