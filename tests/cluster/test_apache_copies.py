"""Apache Kafka's own copier keeps its promise while the node is killed: a short run."""

from pathlib import Path

import pytest
from tests.cluster.apache_copies import copy_and_compare


@pytest.mark.parametrize("is_group", [False, True], ids=["assigned", "group"])
@pytest.mark.thorough(guard="tests/cluster/test_exactly_once.py::test_every_record_is_copied_exactly_once")
def test_apache_copier_copies_exactly_once_and_in_order(tmp_path: Path, is_group: bool) -> None:
    copy_and_compare(tmp_path, messages=3000, bounces=3, is_group=is_group)
