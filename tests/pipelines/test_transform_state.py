"""`transformWithState` works in a pipeline as in any program: nobody has to know of its state store."""

from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.records import committed_json, create_topic, produce_json
from tests.pipelines.test_delivery import Run, run
from tests.support.ottla_node import OttlaNode

from ottla.pipelines import pipeline, topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

# The first test of a process starts Java, which takes minutes where everything else runs as well.
pytestmark = pytest.mark.timeout(900)


def test_ids_that_were_seen_are_dropped_by_a_processor(
    spark: "SparkSession", node: OttlaNode, run: Run
) -> None:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Once(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.seen = handle.getValueState("seen", "n long")

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Any:  # noqa: N802
            if not self.seen.exists():
                self.seen.update((1,))
                yield pd.DataFrame({"id": [key[0]]})

        def close(self) -> None:
            pass

    create_topic(node.bootstrap, "transformed", 1)

    @pipeline("transformed", to="transformed-out", key="id")
    def once(rows: Any = topic("transformed", schema="id string")) -> Any:
        return rows.groupBy("id").transformWithStateInPandas(Once(), "id string", "append", "none")

    for _ in range(2):
        produce_json(node.bootstrap, "transformed", [{"id": f"{number % 3}"} for number in range(9)])
        run(once)

    assert sorted(row["id"] for row in committed_json(node.bootstrap, "transformed-out")) == ["0", "1", "2"]
    assert spark.conf.get("spark.sql.streaming.stateStore.providerClass", "none") == "none"
