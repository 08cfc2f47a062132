"""kcat, as Debian has it: produces, consumes, lists, and looks up offsets."""

import json
import shutil
import subprocess

import pytest
from tests.support.ottla_node import OttlaNode


def kcat(node: OttlaNode, *arguments: str, reads: str = "") -> str:
    """Run kcat against the node, and return what it wrote."""
    program = shutil.which("kcat")
    if program is None:
        pytest.skip("kcat is not installed")
    command = [program, "-b", node.bootstrap, *arguments]
    done = subprocess.run(command, input=reads, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_produced_is_consumed(ottla_node: OttlaNode) -> None:
    kcat(ottla_node, "-P", "-t", "kcat", "-p", "0", "-K:", "-H", "trace=1", reads="a:one\nb:two\n")
    read = kcat(ottla_node, "-C", "-t", "kcat", "-p", "0", "-e", "-q", "-f", "%o %k %s %h\n")
    assert read.splitlines() == ["0 a one trace=1", "1 b two trace=1"]
    assert kcat(ottla_node, "-Q", "-t", "kcat:0:-1").split() == ["kcat", "[0]", "offset", "2"]


def test_topics_are_listed(ottla_node: OttlaNode) -> None:
    kcat(ottla_node, "-P", "-t", "kcat-listed", "-p", "1", reads="x\n")
    told = json.loads(kcat(ottla_node, "-L", "-J", "-t", "kcat-listed"))
    assert [len(topic["partitions"]) for topic in told["topics"]] == [3]


def test_a_group_consumes_on(ottla_node: OttlaNode) -> None:
    kcat(ottla_node, "-P", "-t", "kcat-group", "-p", "0", reads="one\ntwo\n")
    settings = ("-X", "auto.offset.reset=earliest", "-G", "kcat-group")
    first = kcat(ottla_node, *settings, "-e", "-q", "kcat-group")
    kcat(ottla_node, "-P", "-t", "kcat-group", "-p", "0", reads="three\n")
    second = kcat(ottla_node, *settings, "-e", "-q", "kcat-group")
    assert (first.split(), second.split()) == (["one", "two"], ["three"])
