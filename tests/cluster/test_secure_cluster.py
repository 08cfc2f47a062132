"""Three nodes that log in to each other over TLS, with access rules: nobody else gets in."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import trustme
from tests.support.ottla_node import OttlaNode, free_port, ottla_command

CLUSTER_ID = "b3R0bGEtdGVzdC1jbHVzdA"
MODULES = "org.apache.kafka.common.security"


def _nodes(root: Path) -> list[OttlaNode]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(root / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    (root / "node.pem").write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    ports = {number: free_port() for number in (1, 2, 3)}
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in ports.items())
    login = 'username="admin" password="admin-secret"'
    shared = {
        "process.roles": "broker,controller",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.scram-sha-512.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required {login};"
        ),
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{MODULES}.plain.PlainLoginModule required {login} user_admin="admin-secret";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(root / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(root / "ca.pem"),
    }
    scram = "SCRAM-SHA-512=[name=admin,password=admin-secret]"
    return [
        OttlaNode(
            root / str(number),
            {
                **shared,
                "node.id": str(number),
                "listeners": f"CLIENT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
            },
            options=("--cluster-id", CLUSTER_ID, "--add-scram", scram),
        )
        for number, port in ports.items()
    ]


def _run(root: Path, node: OttlaNode, *arguments: str, text: str | None = None) -> str:
    settings = {
        "BOOTSTRAP_SERVERS": node.bootstrap,
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL_MECHANISM": "SCRAM-SHA-512",
        "SASL_USERNAME": "admin",
        "SASL_PASSWORD": "admin-secret",
        "SSL_CA_LOCATION": str(root / "ca.pem"),
    }
    done = subprocess.run(
        ottla_command(*arguments),
        input=text,
        env={
            **os.environ,
            **{f"OTTLA_PROPERTY_{name}": value for name, value in settings.items()},
            "OTTLA_CONFIG": "/nowhere/config.toml",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nodes_log_in_to_each_other(tmp_path: Path) -> None:
    nodes = _nodes(tmp_path)
    try:
        with ThreadPoolExecutor(len(nodes)) as pool:
            # None is ready before there is a quorum.
            list(pool.map(lambda node: node.start(), nodes))
        first, _, last = nodes
        _run(tmp_path, first, "topic", "create", "three", "--partitions", "3", "--replication-factor", "3")
        _run(tmp_path, first, "produce", "three", text="hello\n")
        assert "hello" in _run(tmp_path, last, "consume", "three")
        # A change that any broker passes on to the controller, with the principal of the client.
        for node in nodes:
            _run(tmp_path, node, "acl", "add", "bob", "read", f"topic:by-{node.port}")
        assert _run(tmp_path, last, "acl", "list").count("User:bob") == len(nodes)
    finally:
        for node in nodes:
            if node.process is not None:
                node.stop()
