"""Metadata that is damaged or gone is repaired: what can be read stays, and partitions tell lost topics."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lifecycle import repairing
from ottla.broker.lifecycle.repairing import RepairFailure, find_damage, repair_metadata
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import load_node_config
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

QUORUM = "__cluster_metadata-0"
LOG = f"{QUORUM}/00000000000000000000.log"
SNAPSHOT = f"{QUORUM}/00000000000000000000-0000000000.checkpoint"
VALUES = [b"0", b"1", b"2"]
PRODUCER_ID = 5_000


@contextmanager
def _node(root: Path) -> Iterator[InProcessClient]:
    with in_process_node(root) as node:
        yield InProcessClient(node)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a node with two topics leaves, to be copied. `orders` has got a partition later."""
    root = tmp_path_factory.mktemp("written")
    with _node(root) as client:
        create_topic(client, "orders", partitions=1)
        create_topic(client, "payments", partitions=2)
        more = CreatePartitionsTopic(name="orders", partition_count=2, assignments=None)
        answer = client.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False))
        assert answer.results[0].error_code is ErrorCode.NONE
        for topic in ("orders", "payments"):
            for partition in (0, 1):
                for value in VALUES:
                    produce(client, topic, batch_of(value), partition)
        sequenced = batch_of(b"idempotent", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0)
        assert produce(client, "payments", sequenced, 1).error_code is ErrorCode.NONE
    return root


@pytest.fixture
def root(tmp_path: Path, written: Path) -> Path:
    """A node that does not run."""
    shutil.copytree(written / "data", tmp_path / "data")
    return tmp_path


def _configs(root: Path, **settings: str) -> EffectiveConfigs:
    named: Mapping[str, str] = {name.replace("_", "."): value for name, value in settings.items()}
    return load_node_config(b"", {"log.dirs": str(root / "data"), **named}).configs


def _flip(root: Path, words: bytes, times: int = 1) -> bytes:
    """Flip a bit where words stand for the first, second... time. Returns what was there before."""
    log = root / "data" / LOG
    content = before = log.read_bytes()
    position = -1
    for _ in range(times):
        position = content.index(words, position + 1)
    log.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    return before


def _all_there(root: Path) -> None:
    with _node(root) as client:
        for topic in ("orders", "payments"):
            for partition in (0, 1):
                assert fetch_all(client, topic, partition)[:3] == VALUES
            assert produce(client, topic, batch_of(b"next")).error_code is ErrorCode.NONE


def _next_producer_id(root: Path) -> int:
    with _node(root) as client:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return int(client.ask(request).producer_id)


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_is_sound_needs_no_repair(root: Path) -> None:
    before = _contents(root)
    assert find_damage(_configs(root)) == []
    assert _contents(root) == before


def test_a_flipped_bit_is_told_and_its_topic_put_back(root: Path) -> None:
    before = _flip(root, b"payments")
    damaged = (root / "data" / LOG).read_bytes()
    (told,) = find_damage(_configs(root))
    assert f"{root}/data/{LOG}" in told
    assert (root / "data" / LOG).read_bytes() == damaged != before

    done = repair_metadata(_configs(root))

    assert done[-1] == (
        "restored payments with partitions 0, 1; its configs are reset to the defaults, so set them again"
    )
    assert not any("orders" in sentence for sentence in done)
    assert (root / "data" / f"{LOG}.damaged").read_bytes() == damaged
    assert find_damage(_configs(root)) == []
    _all_there(root)


def test_a_log_that_does_not_fit_together_behind_the_damage_is_cut(root: Path) -> None:
    # The partition that `orders` got later belongs to no topic then.
    _flip(root, b"orders")

    done = repair_metadata(_configs(root))

    assert any(sentence.startswith("the metadata after the damage cannot be used: ") for sentence in done)
    assert any(sentence.startswith(f"cut {QUORUM} at offset ") for sentence in done)
    restored = {sentence.partition(";")[0] for sentence in done if sentence.startswith("restored")}
    assert "restored orders with partitions 0, 1" in restored
    # What was written between the damage and the cut stays.
    assert not any("payments" in sentence for sentence in restored)
    _all_there(root)


@pytest.mark.parametrize(
    ("was_clean", "words"), [(True, "with offsets 0 to "), (False, "does not name its voters")]
)
def test_topics_come_back_from_their_partitions_when_all_metadata_is_gone(
    root: Path, was_clean: bool, words: str
) -> None:
    shutil.rmtree(root / "data" / QUORUM)
    if not was_clean:
        for path in (root / "data").glob(".*"):
            path.unlink()
    (told,) = find_damage(_configs(root))
    assert words in told

    done = repair_metadata(_configs(root))

    assert any("starts again" in sentence for sentence in done)
    assert {sentence.partition(" with")[0] for sentence in done} >= {"restored orders", "restored payments"}
    _all_there(root)
    assert _next_producer_id(root) > PRODUCER_ID + 1_000_000


def test_producers_get_new_ids_after_metadata_was_lost_in_part(root: Path) -> None:
    _flip(root, b"payments")
    before = PRODUCER_ID
    repair_metadata(_configs(root))
    assert _next_producer_id(root) > before + 1_000_000


@pytest.mark.parametrize("name", [f"{QUORUM}/quorum-state", SNAPSHOT])
def test_a_small_file_that_is_garbage_is_set_aside(root: Path, name: str) -> None:
    path = root / "data" / name
    path.write_bytes(b"\xff" * 200)
    damage = find_damage(_configs(root))
    assert damage[0].startswith(f"{path} is damaged: ")

    done = repair_metadata(_configs(root))

    assert f"removed {path}; a copy is {path}.damaged" in done
    assert path.with_name(f"{path.name}.damaged").read_bytes() == b"\xff" * 200
    assert find_damage(_configs(root)) == []
    _all_there(root)


def test_a_repair_that_was_interrupted_is_told_and_done_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _flip(root, b"payments")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repairing._Repair, "_put_back", interrupt)
        with pytest.raises(KeyboardInterrupt):
            repair_metadata(_configs(root))
    assert "an earlier repair was interrupted" in find_damage(_configs(root))

    done = repair_metadata(_configs(root))

    assert any(sentence.startswith("restored payments") for sentence in done)
    assert find_damage(_configs(root)) == []
    _all_there(root)


@pytest.mark.parametrize(
    "settings",
    [
        {"controller_quorum_voters": "0@127.0.0.1:9093,1@127.0.0.1:9094"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9093,127.0.0.1:9094"},
    ],
)
def test_a_voter_among_several_is_not_repaired_alone(root: Path, settings: dict[str, str]) -> None:
    _flip(root, b"payments")
    before = _contents(root)
    with pytest.raises(RepairFailure, match="belongs to a quorum of several nodes"):
        repair_metadata(_configs(root, **settings))
    assert _contents(root) == before


def test_a_directory_that_does_not_say_whose_it_is_is_not_repaired(root: Path) -> None:
    meta = root / "data" / "meta.properties"
    content = meta.read_bytes()
    for garbage in (
        b"version=x\n",
        b"".join(line for line in content.splitlines(True) if b"directory.id" not in line),
    ):
        meta.write_bytes(garbage)
        for action in (find_damage, repair_metadata):
            with pytest.raises(RepairFailure, match=r"meta\.properties"):
                action(_configs(root))
    meta.write_bytes(content)
    assert find_damage(_configs(root)) == []


def test_a_partition_without_a_topic_id_is_told_and_skipped(root: Path) -> None:
    _flip(root, b"payments")
    (root / "data" / "payments-0" / "partition.metadata").unlink()

    done = repair_metadata(_configs(root))

    assert f"{root}/data/payments-0 has no topic id, so it is skipped" in done
    assert any(sentence.startswith("restored payments with partitions 1;") for sentence in done)


def test_an_older_topic_of_the_same_name_is_skipped(root: Path) -> None:
    _flip(root, b"payments")
    older = root / "data" / "orders-7"
    shutil.copytree(root / "data" / "payments-0", older)
    other_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    (older / "partition.metadata").write_text(f"version: 0\ntopic_id: {other_id}")

    done = repair_metadata(_configs(root))

    assert "orders exists with another id, so an older topic of that name is skipped" in done
    with _node(root) as client:
        assert fetch_all(client, "orders", 1) == VALUES


def test_what_begins_again_leads_with_a_later_epoch(root: Path) -> None:
    shutil.rmtree(root / "data" / QUORUM)
    epochs = root / "data" / "orders-0" / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n0 0\n7 2\n")
    repair_metadata(_configs(root))
    with in_process_node(root) as node:
        topic = node.broker.image.topics.find("orders")
        assert topic is not None
        assert topic.partitions[0].leader_epoch >= 8
        assert topic.partitions[1].leader_epoch < 8


def test_garbage_in_the_file_that_formatting_wrote_is_set_aside_with_the_rest(root: Path) -> None:
    bootstrap = root / "data" / "bootstrap.checkpoint"
    bootstrap.write_bytes(b"garbage")
    shutil.rmtree(root / "data" / QUORUM)
    done = repair_metadata(_configs(root))
    assert f"removed {bootstrap}; a copy is {bootstrap}.damaged" in done
    _all_there(root)


def test_what_cannot_be_used_at_all_is_copied_before_it_is_taken_away(root: Path) -> None:
    log, snapshot = root / "data" / LOG, root / "data" / SNAPSHOT
    log.write_bytes(b"\xff" * 300)
    snapshot.write_bytes(b"\xff" * 200)

    done = repair_metadata(_configs(root))

    assert any(
        sentence.startswith("the metadata starts again; copies of the old files are in ") for sentence in done
    )
    copies = {path.name: path.read_bytes() for path in (root / "data" / QUORUM).glob("*.damaged*")}
    assert b"\xff" * 300 in copies.values()
    assert b"\xff" * 200 in copies.values()
    assert any(name.startswith("quorum-state") for name in copies), "it counts no more"
    assert {sentence.partition(" with")[0] for sentence in done} >= {"restored orders", "restored payments"}
    _all_there(root)
