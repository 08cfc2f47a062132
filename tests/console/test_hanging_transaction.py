"""A transaction that no coordinator knows of is shown, and aborted in its partition after it was asked."""

import asyncio
from pathlib import Path

from tests.console.conftest import QUICK
from tests.console.test_acts import commands_of, hidden_fields
from tests.console.test_pages import text_of
from tests.support.console_visitor import ConsoleVisitor
from tests.support.data_plane import produce_request

from ottla.client.admin import Admin
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.settings import AdminSettings
from ottla.client.security import cluster_for
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.testing.node import ThreadNode

LONG_AGO_MS = 1_600_000_000_000
PRODUCER = 77
WHERE = TopicPartition("left", 0)


async def leave_open(bootstrap: str) -> None:
    """Write a record of a transaction, as a broker before the checks of transactions would have taken it."""
    batch = build_batch(
        [Record(0, LONG_AGO_MS, b"k", b"v")],
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    cluster = cluster_for(AdminSettings.of({"bootstrap.servers": bootstrap}))
    await cluster.start()
    async with Admin(bootstrap) as admin:
        node_id = (await admin.cluster.describe()).brokers[0].node_id
    answer = await cluster.ask_node(node_id, produce_request("left", batch, transactional_id="gone"), 11)
    await cluster.close()
    assert answer.responses[0].partition_responses[0].error_code == 0


async def stable_end(bootstrap: str) -> int:
    async with Admin(bootstrap) as admin:
        found = await admin.offsets.list({WHERE: OffsetSpec.LATEST}, read_committed=True)
        return int(found[WHERE].offset)


def test_a_hanging_transaction_is_aborted_after_it_was_asked(tmp_path: Path) -> None:
    settings = {**QUICK, "transaction.partition.verification.enable": "false"}
    with ThreadNode(tmp_path, settings) as node:
        node.create_topic("left")
        asyncio.run(leave_open(node.bootstrap))
        with ConsoleVisitor.of(node.bootstrap) as acting:
            page = acting.page("/transactions?topic=left")
            assert str(PRODUCER) in text_of(page)
            form = {"place": "left-0", "producer": str(PRODUCER)}
            asked = acting.post("/transactions/abort", form)
            assert "no coordinator knows it" in asked.text
            assert any("ottla txn abort --topic left" in one for one in commands_of(asked.text))
            assert asyncio.run(stable_end(node.bootstrap)) == 0
            assert acting.post("/transactions/abort", hidden_fields(asked.text)).status_code == 303
            assert asyncio.run(stable_end(node.bootstrap)) == 2
            # It is gone, and so is the way to abort it.
            assert acting.post("/transactions/abort", form).status_code == 404
            assert acting.post("/transactions/abort", {**form, "place": "left"}).status_code == 400
