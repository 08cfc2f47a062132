"""`ottla log verify` and `ottla log salvage`: what is sound, what is damaged, and what can be saved."""

import json
from pathlib import Path

import pytest
from tests.cli.typing import fail, run, succeed
from tests.unit.storage.logs import batch

from ottla.cli.directories.segment_files import is_kept, partition_directories


def segment(directory: Path, *offsets: int, first: int = 0) -> Path:
    """Write a segment with a batch of one record at each offset."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{first:020}.log"
    path.write_bytes(b"".join(batch(base_offset=offset, value=b"v%d" % offset) for offset in offsets))
    for suffix in ("index", "timeindex"):
        (directory / f"{first:020}.{suffix}").touch()
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A partition with three batches, of which the second is to be damaged."""
    segment(tmp_path / "orders-7", 0, 1, 2)
    return tmp_path / "orders-7"


def batch_bytes(path: Path) -> int:
    return path.stat().st_size // 3


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def damaged(directory: Path) -> Path:
    path = directory / f"{0:020}.log"
    flip(path, 2 * batch_bytes(path) - 2)
    return path


# Verifying


def test_sound_files_have_no_damage(directory: Path) -> None:
    for path in (directory, directory / f"{0:020}.log"):
        typed = succeed("log", "verify", str(path))
        assert "no damage found" in typed.out + typed.err
        assert succeed("log", "verify", "--json", str(path)).data == []


def test_a_batch_whose_checksum_is_wrong_is_damage_between_two_offsets(directory: Path) -> None:
    path = damaged(directory)
    size = batch_bytes(path)
    typed = run("log", "verify", "--json", str(directory))
    assert typed.code == 1
    assert typed.data == [
        {
            "path": str(path),
            "damaged": True,
            "what": f"{size} bytes at position {size} are not a valid batch: offsets 1 to 1",
        }
    ]
    assert run("log", "verify", "--json", str(path)).data == typed.data


def test_damage_at_the_end_reaches_as_far_as_nobody_knows(directory: Path) -> None:
    path = directory / f"{0:020}.log"
    flip(path, 3 * batch_bytes(path) - 1)
    (found,) = run("log", "verify", "--json", str(directory)).data
    assert found["what"].endswith("are not a valid batch: from offset 2 on")


def test_bytes_between_batches_that_follow_each_other_held_no_offset(directory: Path) -> None:
    path = directory / f"{0:020}.log"
    content = path.read_bytes()
    path.write_bytes(content[: batch_bytes(path)] + b"?" * 100 + content[batch_bytes(path) :])
    (found,) = run("log", "verify", "--json", str(directory)).data
    assert found["what"].endswith("are not a valid batch: no offset")


def test_space_that_was_allocated_in_advance_is_no_damage(directory: Path) -> None:
    path = directory / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + bytes(64))
    (found,) = succeed("log", "verify", "--json", str(directory)).data
    assert (found["damaged"], found["what"]) == (False, "64 zero bytes at the end: preallocated space")
    path.write_bytes(path.read_bytes() + b"\1")
    assert run("log", "verify", str(directory)).code == 1


@pytest.mark.parametrize(
    "name", [f"{0:020}.index", f"{0:020}.timeindex", f"{0:020}.txnindex", f"{0:020}.snapshot"]
)
def test_other_files_of_a_partition_are_checked_too(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"\xff" * 13)
    found = run("log", "verify", "--json", str(directory))
    assert found.code == 1
    assert {row["path"] for row in found.data} == {str(directory / name)}


@pytest.mark.parametrize(("suffix", "entry_bytes"), [("index", 8), ("timeindex", 12)])
def test_an_index_that_ends_within_an_entry_is_damage_and_can_be_dumped(
    directory: Path, suffix: str, entry_bytes: int
) -> None:
    path = directory / f"{0:020}.{suffix}"
    # The beginning of the log, as an index says it: offset and position 0.
    path.write_bytes(bytes(entry_bytes) + b"\1" * (entry_bytes - 1))
    (found,) = run("log", "verify", "--json", str(directory)).data
    assert found["what"] == f"its {2 * entry_bytes - 1} bytes are no whole entries of {entry_bytes}"
    assert len(succeed("log", "dump", "--json", str(path)).lines) == 1
    path.write_bytes(bytes(4 * entry_bytes))
    assert succeed("log", "verify", "--json", str(directory)).data == []


def test_a_checkpoint_of_epochs_is_checked_too(directory: Path) -> None:
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert succeed("log", "verify", "--json", str(directory)).data == []
    (directory / "leader-epoch-checkpoint").write_text("garbage")
    assert run("log", "verify", str(directory)).code == 1


def test_segments_that_are_being_made_or_deleted_are_left_alone(directory: Path) -> None:
    for suffix in ("cleaned", "swap", "deleted"):
        (directory / f"{9:020}.log.{suffix}").write_bytes(b"?" * 80)
    assert succeed("log", "verify", "--json", str(directory)).data == []


def test_what_was_set_aside_is_listed_and_is_no_damage(directory: Path) -> None:
    kept = directory / f"{0:020}.log.damaged"
    kept.write_bytes(b"?" * 10 + (directory / f"{0:020}.log").read_bytes())
    (directory / "notes.damaged").write_bytes(b"?")
    assert is_kept(kept)
    assert not is_kept(directory / "notes.damaged")
    assert not is_kept(directory / f"{0:020}.log")
    size = kept.stat().st_size
    for path in (directory, kept):
        (found,) = succeed("log", "verify", "--json", str(path)).data
        assert found["what"] == f"{size} bytes of damaged data, with 3 valid batches, offsets 0 to 2"
    kept.write_bytes(b"?" * 10)
    (found,) = succeed("log", "verify", "--json", str(kept)).data
    assert found["what"] == "10 bytes of damaged data, with 0 valid batches"


def test_a_data_directory_stands_for_its_partitions(directory: Path) -> None:
    data = directory.parent
    assert partition_directories(data) == [data], "without its mark it is a directory like any other"
    (data / "meta.properties").write_text("version=1\n")
    segment(data / "payments-0", 0)
    (data / "orders-3.0123456789abcdef0123456789abcdef-delete").mkdir()
    (data / "lost+found").mkdir()
    assert partition_directories(data) == [directory, data / "payments-0"]
    damaged(directory)
    (found,) = run("log", "verify", "--json", str(data)).data
    assert found["path"] == str(directory / f"{0:020}.log")


# Salvaging


def salvaged(*words: str) -> tuple[list[tuple[int, str]], str]:
    typed = succeed("log", "salvage", *words)
    records = [json.loads(line) for line in typed.out.splitlines()]
    assert all((record["topic"], record["partition"]) == ("orders", 7) for record in records)
    return [(record["offset"], record["value"]) for record in records], typed.err.strip()


def test_sound_records_are_saved_and_doubtful_ones_only_where_that_is_wanted(directory: Path) -> None:
    path = damaged(directory)
    size = batch_bytes(path)
    sound, said = salvaged(str(path))
    assert sound == [(0, "v0"), (2, "v2")]
    assert said == (
        f"2 sound records, {size} damaged bytes in 1 files; 1 more are in batches with wrong checksums: "
        "--damaged prints them as well"
    )
    all_of_them, said = salvaged("--damaged", str(path))
    assert [offset for offset, _ in all_of_them] == [0, 1, 2]
    assert said.endswith("1 more are in batches with wrong checksums: printed as well")


def test_of_a_directory_what_was_set_aside_is_saved(directory: Path) -> None:
    said = fail("log", "salvage", str(directory))
    assert said == "no damaged data was kept there; name a segment to print its records"
    kept = directory / f"{0:020}.log.damaged"
    kept.write_bytes(b"?" * 10 + batch(base_offset=4, value=b"v4"))
    found, said = salvaged(str(directory))
    assert found == [(4, "v4")]
    assert said.startswith("1 sound records, 10 damaged bytes in 1 files")


def test_bytes_that_are_no_batch_at_all_give_nothing(directory: Path) -> None:
    path = directory / f"{0:020}.log"
    path.write_bytes(b"\xff" * 200)
    assert salvaged("--damaged", str(path)) == ([], "0 sound records, 200 damaged bytes in 1 files")


def test_a_file_elsewhere_belongs_to_no_topic(tmp_path: Path) -> None:
    path = tmp_path / "copy.log"
    path.write_bytes(batch(base_offset=0, value=b"v0"))
    (record,) = succeed("log", "salvage", str(path)).lines
    assert (record["topic"], record["partition"], record["value"]) == ("", 0, "v0")
