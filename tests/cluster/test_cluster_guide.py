"""The page about clusters does what it says, as far as one machine allows: hosts are ports here."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from ottla.testing.ports import free_port

PAGE = (Path(__file__).parents[2] / "docs/guide/cluster.md").read_text()
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def shell(script: str, directory: Path) -> str:
    done = subprocess.run(
        ["bash", "-e"], input=script, text=True, cwd=directory, env=ENVIRONMENT, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_three_machines_are_set_up_by_hand(tmp_path: Path) -> None:
    ports = {f"kafka-{number}:{port}": free_port() for number in (1, 2, 3) for port in (9092, 9093)}

    def here(text: str, number: int) -> str:
        """Put what a page says about a machine onto this one."""
        for name, port in ports.items():
            text = text.replace(name, f"127.0.0.1:{port}")
        text = text.replace("/etc/ottla/", f"{tmp_path}/etc-{number}/")
        return text.replace("/var/lib/ottla", f"{tmp_path}/data-{number}")

    (properties,) = blocks("properties")
    (unit,) = blocks("ini")
    scripts = blocks("sh")
    (make_ids,) = [script for script in scripts if "random-id" in script]
    (format_directory,) = [script for script in scripts if "storage format" in script]
    (ask,) = [script for script in scripts if "quorum status" in script]
    start = re.search(r"^ExecStart=/opt/ottla/bin/(.*)$", unit, re.MULTILINE)
    assert start is not None

    shell(make_ids, tmp_path)
    nodes: list[subprocess.Popen[str]] = []
    for number in (1, 2, 3):
        (tmp_path / f"etc-{number}").mkdir()
        mine = properties.replace("node.id=1", f"node.id={number}")
        lines = mine.splitlines(keepends=True)
        mine = "".join(
            line.replace("kafka-1", f"kafka-{number}") if "listeners=" in line else line for line in lines
        )
        (tmp_path / f"etc-{number}/server.properties").write_text(here(mine, number))
        said = shell(f". ./ids\n{here(format_directory, number)}", tmp_path)
        assert said.startswith(f"formatted {tmp_path}/data-{number} for cluster ")
    try:
        for number in (1, 2, 3):
            with (tmp_path / f"{number}.log").open("w") as log:
                nodes.append(
                    subprocess.Popen(
                        here(start[1], number).split(), env=ENVIRONMENT, text=True,
                        stdout=subprocess.PIPE, stderr=log,
                    )
                )  # fmt: skip
        for number, node in enumerate(nodes, 1):
            assert node.stdout is not None
            assert node.stdout.readline().startswith("ready "), (tmp_path / f"{number}.log").read_text()
        said = shell(here(ask, 1), tmp_path)
        for number in (1, 2, 3):
            assert re.search(rf"\b{number}\b", said)
        assert restart_works(nodes, here(start[1], 2).split())
    finally:
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            node.wait(120)
            assert node.stdout is not None
            node.stdout.close()


def restart_works(nodes: "list[subprocess.Popen[str]]", command: list[str]) -> bool:
    """Stop the second node in order, and start it again."""
    nodes[1].send_signal(signal.SIGTERM)
    assert nodes[1].wait(120) == 0
    assert nodes[1].stdout is not None
    nodes[1].stdout.close()
    nodes[1] = subprocess.Popen(command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE)
    assert nodes[1].stdout is not None
    return nodes[1].stdout.readline().startswith("ready ")
