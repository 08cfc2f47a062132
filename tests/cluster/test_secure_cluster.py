"""Three nodes that log in to each other over TLS, with access rules: nobody else gets in."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from tests.support.identity_provider import AUDIENCE, CLIENT_SECRET, ISSUER, IdentityProvider
from tests.support.ottla_node import OttlaNode, ottla_command

from ottla.testing.ports import free_port

CLUSTER_ID = "b3R0bGEtdGVzdC1jbHVzdA"
MODULES = "org.apache.kafka.common.security"
LOGIN = 'username="admin" password="admin-secret"'


def _by_password(_: IdentityProvider) -> dict[str, str]:
    """SCRAM between brokers, PLAIN to controllers."""
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.scram-sha-512.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required {LOGIN};"
        ),
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{MODULES}.plain.PlainLoginModule required {LOGIN} user_admin="admin-secret";'
        ),
        "super.users": "User:admin",
    }


def _by_token(provider: IdentityProvider) -> dict[str, str]:
    """OAUTHBEARER everywhere between nodes, with tokens of a provider."""
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.client.sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.client.credentials.client.id": "admin",
        "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "super.users": "User:admin",
    }


def _by_certificate(_: IdentityProvider) -> dict[str, str]:
    """Mutual TLS between nodes. Clients log in on a listener of their own."""
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,NODES:SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "NODES",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.nodes.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:.*O=trustme.*/node/",
        "super.users": "User:admin;User:node",
    }


OTHER_WAYS = pytest.mark.thorough(
    guard="tests/cluster/test_secure_cluster.py::test_nodes_log_in_to_each_other"
)
WAYS = {"password": _by_password, "token": _by_token, "certificate": _by_certificate}


def _nodes(root: Path, way: str, provider: IdentityProvider) -> list[OttlaNode]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(root / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    (root / "node.pem").write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    ports = {number: free_port() for number in (1, 2, 3)}
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in ports.items())
    shared = {
        "process.roles": "broker,controller",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(root / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(root / "ca.pem"),
        **WAYS[way](provider),
    }
    (root / "admin.password").write_text("admin-secret\n")
    scram = f"SCRAM-SHA-512=[name=admin,password-file={root / 'admin.password'}]"
    more = ",NODES://127.0.0.1:0" if way == "certificate" else ""
    return [
        OttlaNode(
            root / str(number),
            {
                **shared,
                "node.id": str(number),
                "listeners": f"CLIENT://127.0.0.1:0{more},CONTROLLER://127.0.0.1:{port}",
            },
            options=("--cluster-id", CLUSTER_ID, "--add-scram", scram),
        )
        for number, port in ports.items()
    ]


@contextmanager
def _running(root: Path, way: str) -> Iterator[list[OttlaNode]]:
    with IdentityProvider() as provider:
        nodes = _nodes(root, way, provider)
        try:
            with ThreadPoolExecutor(len(nodes)) as pool:
                # None is ready before there is a quorum.
                list(pool.map(lambda node: node.start(), nodes))
            yield nodes
        finally:
            # In order, the last one would wait for others that are gone.
            for node in nodes:
                if node.process is not None:
                    node.kill()


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
            "OTTLA_CONFIG": "/dev/null",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("password", marks=OTHER_WAYS),
        pytest.param("token", marks=OTHER_WAYS),
        "certificate",
    ],
)
def test_nodes_log_in_to_each_other(tmp_path: Path, way: str) -> None:
    with _running(tmp_path, way) as nodes:
        first, _, last = nodes
        _run(tmp_path, first, "topic", "create", "three", "--partitions", "3", "--replication-factor", "3")
        _run(tmp_path, first, "produce", "three", text="hello\n")
        assert "hello" in _run(tmp_path, last, "consume", "three")
        # A change that any broker passes on to the controller, with the principal of the client.
        # At least one of the two is not the controller.
        for node in (first, last):
            _run(tmp_path, node, "acl", "add", "bob", "read", f"topic:by-{node.port}")
        assert _run(tmp_path, last, "acl", "list").count("User:bob") == 2
        for node in nodes:
            assert "admin-secret" not in node.read_log()
            assert CLIENT_SECRET not in node.read_log()
