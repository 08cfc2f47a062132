"""One node for all tests of pipelines, and one Spark session for each process that runs some."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.effort import QUICK_JAVA
from tests.support.ottla_node import KEEPS_OLD_RECORDS, OttlaNode

from ottla.pipelines.link import Link

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running node. It is shared: use topics and pipelines with names of your own."""
    settings = {"num.partitions": "3", "offsets.topic.num.partitions": "2"}
    settings["transaction.state.log.num.partitions"] = "2"
    settings |= KEEPS_OLD_RECORDS
    with OttlaNode(tmp_path_factory.mktemp("pipelines"), settings) as node:
        yield node


@pytest.fixture
def link(node: OttlaNode) -> Iterator[Link]:
    """A way to the node."""
    link = Link({"bootstrap.servers": node.bootstrap})
    yield link
    link.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A local session. Starting one takes seconds, so all tests of a process share it."""
    pytest.importorskip("pyspark")
    from ottla.pipelines.spark.session import MissingPiece, end_java, open_session

    directory: Path = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "local"),
        "spark.sql.streaming.noDataProgressEventInterval": "100ms",
    }
    try:
        session = open_session("tests", "local[2]", settings)
    except MissingPiece as error:
        pytest.skip(str(error))
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    end_java()
