"""Several workers share connectors, and one that is killed loses nothing and doubles nothing."""

import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.connect.conftest import FEW_PARTITIONS
from tests.connect.reading import read_topic
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

_QUICK_SESSION = ("--set", "session.timeout.ms=6000", "--set", "heartbeat.interval.ms=1000")


def _workers_of(answer: Any) -> set[str]:
    return {task["worker_id"] for task in answer["tasks"] if task["state"] == "RUNNING"}


@pytest.mark.thorough(
    guard="tests/simulation/connect/test_worker.py::test_two_workers_share_connectors_and_forward_requests"
)
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


def test_workers_forward_over_tls_without_the_password_of_the_client(node: OttlaNode, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    (tmp_path / "users").write_text("ann: secret\n")
    (tmp_path / "users").chmod(0o600)
    names = {"group.id": "guarded", "config.storage.topic": "guarded-configs"}
    options = [
        *FEW_PARTITIONS, *_QUICK_SESSION, "--users", str(tmp_path / "users"),
        "--tls-certificate", str(tmp_path / "own.pem"), "--tls-ca", str(tmp_path / "ca.pem"),
        *(part for key, value in names.items() for part in ("--set", f"{key}={value}")),
    ]  # fmt: skip
    login = {"Authorization": "Basic YW5uOnNlY3JldA=="}
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trust))
    workers = [ConnectProcess(node.bootstrap, *options, scheme="https", opener=opener) for _ in range(2)]
    with workers[0] as one, workers[1] as two:
        for number, worker in enumerate((one, two)):
            (tmp_path / "lines").write_text("line\n")
            config = {
                "connector.class": "FileStreamSource",
                "file": str(tmp_path / "lines"),
                "topic": f"guarded-{number}",
            }
            # One of them leads, and the other one forwards.
            status, answer = worker.ask("PUT", f"/connectors/guarded-{number}/config", config, **login)
            assert status == 201, answer
            assert worker.ask("PUT", f"/connectors/guarded-{number}/config", config)[0] == 401
            # Its tasks come from the worker that runs it, and also reach the leader.
            worker.wait_until_running(f"guarded-{number}", login=login)
