"""Bits flip in files of one of three nodes, and nothing is lost. `make crash WHAT=bit-rot` flips more."""

from pathlib import Path

from tests.cluster.bit_rot import Rot


def test_bits_that_flip_on_one_node_are_healed_from_the_others(tmp_path: Path) -> None:
    rot = Rot(tmp_path, seed=7, hows=("running", "running", "stopped"))
    rot.run(2)
    assert rot.outcome.total() == 2
