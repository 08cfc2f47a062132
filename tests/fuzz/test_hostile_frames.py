"""Hostile bytes raise a typed error, at once and without much memory. `make crash WHAT=frames` has more."""

import pytest
from tests.fuzz.hostile_frames import run, seed_frames, spoilt_frames

from ottla.wire.apis import REMOVED, ApiKey, api_of


@pytest.mark.parametrize("part", range(4))
def test_spoilt_frames_raise_only_typed_errors(part: int) -> None:
    report = run(frames=5_000, seed=part, trace_memory=True)
    assert report.frames == 5_000
    # Were all refused, the mutations would not reach beyond the headers; were none, they would spoil nothing.
    assert 2_500 < report.refused < 4_900


def test_every_api_version_and_direction_is_spoilt() -> None:
    kinds = {
        (key, version, is_request)
        for key in ApiKey
        if key not in REMOVED
        for version in api_of(key).versions.all
        for is_request in (True, False)
    }
    assert seed_frames().keys() == kinds
    spoilt = {(origin.api.key, origin.version, origin.is_request) for origin, _ in spoilt_frames(5_000, 0)}
    assert spoilt == kinds


def test_a_seed_gives_the_same_frames_again() -> None:
    assert list(spoilt_frames(1_000, 3)) == list(spoilt_frames(1_000, 3))
    assert list(spoilt_frames(1_000, 3)) != list(spoilt_frames(1_000, 4))
