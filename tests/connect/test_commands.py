"""`ottla connector`, against a worker."""

import json
import time
from pathlib import Path

from tests.cli.typing import fail, run, succeed
from tests.support.connect_process import ConnectProcess


def test_a_connector_is_created_paused_and_deleted(worker: ConnectProcess, name: str, tmp_path: Path) -> None:
    at = ("--url", worker.url)
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    file = tmp_path / "connector.json"
    config = {"connector.class": "FileStreamSource", "file": str(source), "tasks.max": 1}
    file.write_text(json.dumps({"name": "another", "config": config}))
    succeed("connector", "create", name, "--file", str(file), "-c", f"topic={name}", *at)

    def until(state: str) -> None:
        deadline = time.monotonic() + 120
        while True:
            rows = succeed("connector", "list", "--json", *at).data
            row = next((one for one in rows if one["connector"] == name), None)
            if row is not None and row["state"] == state:
                return
            assert time.monotonic() < deadline, rows

    until("RUNNING")
    shown = succeed("connector", "describe", name, "--json", *at).data
    assert shown["config"]["topic"] == name
    text = succeed("connector", "describe", name, *at).out
    assert "FileStreamSource" in text
    assert succeed("connector", "pause", name, *at).out == f"paused connector {name}\n"
    until("PAUSED")
    succeed("connector", "resume", name, *at)
    until("RUNNING")
    succeed("connector", "restart", name, *at)
    succeed("connector", "stop", name, *at)
    until("STOPPED")
    assert succeed("connector", "delete", name, "--yes", *at).out == f"deleted connector {name}\n"
    assert "(404)" in fail("connector", "delete", name, "--yes", *at)


def test_what_a_worker_refuses_is_a_sentence(worker: ConnectProcess, name: str, tmp_path: Path) -> None:
    at = ("--url", worker.url)
    assert "(400)" in fail("connector", "create", name, "-c", "connector.class=NoSuch", *at)
    assert "(404)" in fail("connector", "describe", name, *at)
    assert run("connector", "create", name, *at).code == 2
    file = tmp_path / "x.json"
    file.write_text("[]")
    assert "must have an object" in fail("connector", "create", name, "--file", str(file), *at)
    assert "no worker answers" in fail("connector", "list", "--url", "http://127.0.0.1:1")
    assert run("connector", "list", "--url", "127.0.0.1:8083").code == 2
