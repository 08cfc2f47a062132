"""Sound batches take the place of damage, and never of anything else."""

from collections.abc import Callable
from typing import Any

from tests.unit.storage.damages.test_damage import written_log
from tests.unit.storage.damages.test_healing import damage, find_damage, sound_bytes
from tests.unit.storage.logs import disk_of, offsets_of

from ottla.broker.logs.healing_round import HealingRound
from ottla.storage.damages.splicing import plan_splice
from ottla.storage.log import Log
from ottla.world.workers import OnLoop, Steps


class AtOnce:
    """Workers that do everything at once."""

    def run_steps(self, steps: Steps, ended: Callable[[], None]) -> Any:
        for step in steps:
            if isinstance(step, OnLoop):
                step.work()
        ended()


def heal(log: Log, content: bytes) -> HealingRound:
    (found,) = find_damage(log) or log.unhealed
    splice = plan_splice(log, found, content)
    assert splice is not None
    workers: Any = AtOnce()
    round_ = HealingRound(workers, lambda _deletion: None, log, splice)
    round_.start(lambda: None)
    round_.settle()
    return round_


def test_damage_is_healed() -> None:
    log = written_log()
    damage(log, 4)
    round_ = heal(log, bytes(sound_bytes(4)))
    assert round_.is_done
    assert not round_.hid_batches
    assert find_damage(log) == []
    assert offsets_of(log) == offsets_of(written_log())


def test_it_is_known_whether_batches_were_hidden_behind_the_damage() -> None:
    log = written_log()
    damage(log, 4, at=16)
    assert heal(log, bytes(sound_bytes(4))).hid_batches


def test_a_segment_is_swapped_if_the_sizes_differ() -> None:
    log = written_log()
    damage(log, 4)
    round_ = heal(log, b"")
    assert round_.is_done
    assert [first for first, _ in offsets_of(log)] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert log.cleaning is None


def test_what_is_not_damaged_any_more_is_left_alone() -> None:
    log = written_log()
    damage(log, 4)
    log.unhealed = tuple(find_damage(log))
    damage(log, 4)
    assert find_damage(log) == [], "the same bit twice"
    before = disk_of(log).read_file(log.segments[1].file.path)
    round_ = heal(log, bytes(len(sound_bytes(4))))
    assert round_.is_stale
    assert not round_.is_done
    assert disk_of(log).read_file(log.segments[1].file.path) == before
