"""Several instances: one writes, the others forward, and none of them is needed for what is acknowledged."""

import os
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
import trustme
from tests.registry.conftest import QUICK
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess
from tests.support.satellite_process import ask

from ottla.client.registry import RegistryClient, RegistryRefused

KILLS = int(os.environ.get("KILLS", "1"))


def _schema(number: int) -> dict[str, str]:
    fields = f'[{{"name":"f{number}","type":"int"}}]'
    return {"schema": f'{{"type":"record","name":"R{number}","fields":{fields}}}'}


class _Registering(threading.Thread):
    """Registers one schema after the other, at whichever instance answers, and keeps what is acknowledged."""

    def __init__(self, urls: list[str], first: int) -> None:
        super().__init__()
        self.ids: dict[int, int] = {}
        self.stopping = threading.Event()
        self._urls = urls
        self._next = first

    def run(self) -> None:
        while not self.stopping.is_set():
            for url in self._urls:
                try:
                    status, answer = ask(
                        url, "POST", f"/subjects/n{self._next}/versions", _schema(self._next)
                    )
                except OSError:
                    continue
                if status == 200:
                    self.ids[self._next] = answer["id"]
                    self._next += 1
                    break
            else:
                time.sleep(0.05)


@pytest.fixture
def own_node(tmp_path: Path) -> OttlaNode:
    return OttlaNode(tmp_path, QUICK)


@pytest.mark.thorough(
    guard="tests/simulation/registry/test_instances.py::test_the_next_instance_writes_when_the_first_has_left"
)
def test_a_killed_writer_loses_no_schema_and_no_id_is_given_twice(own_node: OttlaNode) -> None:
    with own_node as node:
        instances = [RegistryProcess(node.bootstrap) for _ in range(3)]
        for instance in instances:
            instance.start()
        urls = [instance.url for instance in instances]
        workers = [_Registering(urls[n:] + urls[:n], 1 + 100_000 * n) for n in range(2)]
        try:
            for worker in workers:
                worker.start()
            for _ in range(KILLS):
                _wait_for_more(workers, 10)
                writer = next(item for item in instances if item.url == _writer(instances))
                writer.kill()
                _wait_for_more(workers, 10)
                writer.start()
        finally:
            for worker in workers:
                worker.stopping.set()
            for worker in workers:
                worker.join()
        acknowledged = {number: found for worker in workers for number, found in worker.ids.items()}
        for instance in instances:
            _check(instance, acknowledged)
            instance.stop()


def _writer(instances: list[RegistryProcess]) -> str:
    """Return the URL of the instance that writes: the one that takes what is not to be forwarded."""
    while True:
        for instance in instances:
            try:
                status, _ = instance.ask("PUT", "/config/probe", {"compatibility": "FULL"}, X_Forward="true")
            except OSError:
                continue
            if status == 200:
                return instance.url
        time.sleep(0.05)


def _wait_for_more(workers: list[_Registering], more: int) -> None:
    before = [len(worker.ids) for worker in workers]
    while any(len(worker.ids) < count + more for worker, count in zip(workers, before, strict=True)):
        time.sleep(0.05)


def _check(instance: RegistryProcess, acknowledged: dict[int, int]) -> None:
    by_id = defaultdict(set)
    while True:
        # A follower may be a moment behind.
        missing = 0
        for number, given in acknowledged.items():
            status, answer = instance.ask("GET", f"/subjects/n{number}/versions/1")
            if status != 200:
                missing += 1
                continue
            assert answer["id"] == given
            by_id[given].add(number)
        if not missing:
            break
        time.sleep(0.1)
    assert all(len(numbers) == 1 for numbers in by_id.values())


@pytest.mark.thorough(
    guard="tests/simulation/registry/test_instances.py::test_what_another_instance_gets_is_written_by_the_one_that_writes"
)
def test_followers_forward_what_is_to_be_written(node: OttlaNode, subject: str) -> None:
    arguments = ("--topic", "_schemas_shared", "--group", "shared")
    with (
        RegistryProcess(node.bootstrap, *arguments) as one,
        RegistryProcess(node.bootstrap, *arguments) as two,
    ):
        first = one.register(subject, '"int"')
        second = two.register(subject + "-other", '"long"')
        assert second["id"] == first["id"] + 1
        assert {_writer([one, two])} <= {one.url, two.url}
        for instance in (one, two):
            assert instance.register(subject, '"int"')["id"] == first["id"]
            status, deleted = instance.ask("DELETE", f"/subjects/{subject}-none")
            assert (status, deleted["error_code"]) == (404, 40401)


def test_instances_forward_over_tls_and_with_the_login_of_the_client(node: OttlaNode, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    (tmp_path / "users").write_text("ann: secret\n")
    (tmp_path / "users").chmod(0o600)
    options = [
        "--topic", "_guarded", "--group", "guarded", "--users", str(tmp_path / "users"),
        "--tls-certificate", str(tmp_path / "own.pem"), "--tls-client-ca", str(tmp_path / "ca.pem"),
    ]  # fmt: skip
    own = str(tmp_path / "own.pem")
    with (
        RegistryProcess(node.bootstrap, *options, scheme="https") as writer,
        RegistryProcess(node.bootstrap, *options, "--never-write", scheme="https") as other,
        RegistryClient(
            other.url, username="ann", password="secret", ca_location=str(tmp_path / "ca.pem"),
            certificate=(own, own),
        ) as client,
        RegistryClient(
            writer.url, username="ann", password="wrong", ca_location=str(tmp_path / "ca.pem"),
            certificate=(own, own),
        ) as stranger,
    ):  # fmt: skip
        registered = client.register("guarded-value", _schema(1)["schema"])
        assert (registered.id, registered.version) == (1, 1)
        with pytest.raises(RegistryRefused, match="401"):
            stranger.latest("guarded-value")
