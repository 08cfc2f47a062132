"""Several workers share connectors, and one that is killed loses nothing and doubles nothing."""

from pathlib import Path
from typing import Any

from tests.connect.conftest import FEW_PARTITIONS
from tests.connect.reading import read_topic
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

_QUICK_SESSION = ("--set", "session.timeout.ms=6000", "--set", "heartbeat.interval.ms=1000")


def _workers_of(answer: Any) -> set[str]:
    return {task["worker_id"] for task in answer["tasks"] if task["state"] == "RUNNING"}


def test_another_worker_takes_over_from_one_that_was_killed(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "node", QUICK) as node:
        workers = [ConnectProcess(node.bootstrap, *FEW_PARTITIONS, *_QUICK_SESSION) for _ in range(2)]
        for worker in workers:
            worker.start()
        names = [f"lines-{number}" for number in range(4)]
        for number, name in enumerate(names):
            path = tmp_path / name
            path.write_text("".join(f"{name}:{line}\n" for line in range(500)))
            # The second worker forwards to the first, or the other way round.
            workers[number % 2].create(
                name, connector_class="FileStreamSource", file=str(path), topic=name, batch_size="7"
            )
        for name in names:
            workers[0].wait_until_running(name)
        statuses = [workers[0].ask("GET", f"/connectors/{name}/status")[1] for name in names]
        assert set.union(*map(_workers_of, statuses)) == {f"127.0.0.1:{worker.port}" for worker in workers}

        workers[0].kill()

        survivor = f"127.0.0.1:{workers[1].port}"
        for name in names:
            with (tmp_path / name).open("a") as file:
                file.writelines(f"{name}:{line}\n" for line in range(500, 600))
            workers[1].wait_for(
                f"/connectors/{name}/status", lambda answer: _workers_of(answer) == {survivor}
            )
        for name in names:
            records = read_topic(node.bootstrap, name, 600)
            assert [record.value.decode() for record in records] == [f"{name}:{n}" for n in range(600)]
        workers[1].stop()
