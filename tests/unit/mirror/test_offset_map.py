"""Offsets of the source, translated to those of the target."""

import random

import pytest

from ottla.mirror.maker.offset_map import OffsetMap, Run


def test_inside_a_run_an_offset_is_exact_and_between_runs_nothing_is_skipped() -> None:
    offsets = OffsetMap()
    offsets.add(Run(10, 0, 5))
    offsets.add(Run(17, 6, 3))
    translated = [offsets.translate(upstream) for upstream in (9, 10, 14, 15, 16, 17, 19, 20, 99)]
    assert translated == [None, 0, 4, 5, 5, 6, 8, 9, 9]


def test_a_single_sync_is_translated_as_mirror_maker_does() -> None:
    offsets = OffsetMap()
    offsets.add(Run(100, 50))
    assert [offsets.translate(upstream) for upstream in (99, 100, 101, 5000)] == [None, 50, 51, 51]


def test_a_topic_that_was_made_again_is_translated_by_what_came_after_it() -> None:
    offsets = OffsetMap()
    offsets.add(Run(100, 50, 10))
    offsets.add(Run(0, 61, 4))
    assert [offsets.translate(upstream) for upstream in (0, 3, 105)] == [61, 64, 65]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_forgotten_no_reader_skips_a_record(seed: int) -> None:
    rng = random.Random(seed)
    offsets = OffsetMap()
    copied: list[tuple[int, int]] = []
    upstream = downstream = 0
    for _ in range(5000):
        length = rng.randrange(1, 5)
        offsets.add(Run(upstream, downstream, length))
        copied += [(upstream + place, downstream + place) for place in range(length)]
        upstream += length + rng.randrange(3)
        downstream += length + rng.randrange(3)
    newest = len(copied) - 200
    for place in [*range(0, len(copied), 97), *range(newest, len(copied))]:
        at_source, in_target = copied[place]
        found = offsets.translate(at_source)
        assert found is not None, f"replay with seed={seed}"
        assert found <= in_target, f"replay with seed={seed}"
        if place >= newest:
            assert found == in_target, f"replay with seed={seed}"
