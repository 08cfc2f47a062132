"""A registry with a file of users lets nobody else in."""

from pathlib import Path

from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess


def test_only_users_are_let_in(node: OttlaNode, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# who\nada: lovelace, admin\n")
    users.chmod(0o600)
    with RegistryProcess(
        node.bootstrap, "--users", str(users), "--topic", "_schemas_users", "--group", "users"
    ) as guarded:
        assert guarded.ask("GET", "/subjects")[0] == 401
        assert guarded.ask("GET", "/subjects", Authorization="Basic YWRhOnBpbms=")[0] == 401
        assert guarded.ask("GET", "/subjects", Authorization="Basic YWRhOmxvdmVsYWNl") == (200, [])
