"""What security costs, beside Apache Kafka: TLS, logins, and access rules.

Rows are CPU seconds of the broker's process for the same work, in alternating blocks, and how many times
Ottla's Apache Kafka takes. What access rules cost is measured beside a node of Ottla without them. A figure
counts only if the noise beside it is small.
"""

import argparse
import base64
import hashlib
import hmac
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import trustme
from benchmarks.measure import Noise, ratio_of, verdict
from benchmarks.node_brokers import Broker
from confluent_kafka import Consumer, Producer
from cryptography.hazmat.primitives import serialization
from tests.java.apache_kafka import ApacheKafka, free_ports
from tests.support.data_plane import batch_of, fetch_request, produce_request
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.client.sync import Admin
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

TOPIC = "bench"
MODULES = "org.apache.kafka.common.security"
PASSWORD = "bench-secret"
ALL = 2
RULE_SETTINGS = ("authorizer.class.name", "super.users")
RULE_ROUNDS = 9
RULE_COST_PERCENT_MAX = 3.0


class Secured(NamedTuple):
    """A broker with a listener for each kind of client."""

    broker: Broker
    tls: str
    login: str
    ca: str


def _settings(root: Path) -> dict[str, str]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(root / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (root / "node.pem").write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return {
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,LOGIN:SASL_PLAINTEXT"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(root / "node.pem"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.login.plain.sasl.jaas.config": (
            f'{MODULES}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        ),
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "authorizer.class.name": CLASS_NAME,
        "super.users": "User:ANONYMOUS",
        "num.partitions": "1",
    }


@contextmanager
def secured_brokers() -> Iterator[tuple[Secured, Secured]]:
    """Run Ottla and Apache Kafka with the same listeners and rules."""
    root = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    settings = _settings(root)
    ports = free_ports(4)
    added = [
        ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(("TLS", "LOGIN"), pair, strict=True))
        for pair in (ports[:2], ports[2:])
    ]
    ottla = OttlaNode(root / "ottla", {**settings, "listeners": f"PLAINTEXT://127.0.0.1:0,{added[0]}"})
    apache = ApacheKafka(root / "apache", settings, java_options=("-Xms512m", "-Xmx1g", "-XX:+UseG1GC"))
    for key in ("listeners", "advertised.listeners"):
        apache.properties[key] += f",{added[1]}"
    try:
        with ottla, apache:
            made = []
            for name, node, pair in (("Ottla", ottla, ports[:2]), ("Apache Kafka", apache, ports[2:])):
                broker = Broker(name, node.port, node.pid, 0.0)
                broker.create_topic(TOPIC)
                with Admin(broker.bootstrap) as admin:
                    admin.credentials.set_password("alice", PASSWORD)
                add_rules(broker.bootstrap, 10)
                made.append(
                    Secured(broker, f"127.0.0.1:{pair[0]}", f"127.0.0.1:{pair[1]}", str(root / "ca.pem"))
                )
            yield made[0], made[1]
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def node_without_rules() -> Iterator[Secured]:
    """Run an Ottla in which everybody who has logged in may do everything."""
    root = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    settings = {name: text for name, text in _settings(root).items() if name not in RULE_SETTINGS}
    [port] = free_ports(1)
    node = OttlaNode(
        root / "ottla", {**settings, "listeners": f"PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:{port}"}
    )
    try:
        with node:
            broker = Broker("Ottla", node.port, node.pid, 0.0)
            broker.create_topic(TOPIC)
            yield Secured(broker, "", f"127.0.0.1:{port}", "")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def add_rules(bootstrap: str, count: int) -> None:
    """Make rules about other topics, and one that lets alice read and write."""
    names = [TOPIC, *(f"other-{number}" for number in range(count - 1))]
    with PlainClient(bootstrap) as client:
        for start in range(0, count, 1000):
            creations = tuple(
                AclCreation(
                    resource_type=2,
                    resource_name=name,
                    principal="User:alice",
                    host="*",
                    operation=ALL,
                    permission_type=3,
                )
                for name in names[start : start + 1000]
            )
            answer = client.ask(CreateAclsRequest(creations=creations))
            assert {result.error_code for result in answer.results} == {ErrorCode.NONE}


def tls_produce(secured: Secured, scale: float) -> None:
    producer = Producer(
        {
            "bootstrap.servers": secured.tls,
            "security.protocol": "ssl",
            "ssl.ca.location": secured.ca,
            "linger.ms": 5,
            "batch.size": 16_384,
        }
    )
    value = bytes(1_000)
    for _ in range(int(50_000 * scale)):
        producer.produce(TOPIC, value)
        producer.poll(0)
    assert producer.flush(60) == 0


def tls_fetch(secured: Secured, scale: float) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": secured.tls,
            "security.protocol": "ssl",
            "ssl.ca.location": secured.ca,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    left = int(50_000 * scale)
    while left > 0:
        left -= len(consumer.consume(min(left, 1_000), 10))
    consumer.close()


@cache
def _salted(salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), salt, iterations)


def scram_logins(secured: Secured, scale: float) -> None:
    for number in range(int(500 * scale)):
        with PlainClient(secured.login) as client:
            client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"))
            first = f"n=alice,r=nonce{number}"
            begun = client.ask(SaslAuthenticateRequest(auth_bytes=f"n,,{first}".encode()))
            challenge = begun.auth_bytes.decode()
            fields = dict(part.split("=", 1) for part in challenge.split(","))
            salted = _salted(base64.b64decode(fields["s"]), int(fields["i"]))
            key = hmac.digest(salted, b"Client Key", "sha512")
            final = f"c=biws,r={fields['r']}"
            signed = f"{first},{challenge},{final}".encode()
            signature = hmac.digest(hashlib.sha512(key).digest(), signed, "sha512")
            proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=f"{final},p={proof}".encode()))
            assert answer.error_code is ErrorCode.NONE, answer


@contextmanager
def _logged_in(secured: Secured) -> Iterator[PlainClient]:
    with PlainClient(secured.login) as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        client.ask(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}".encode()))
        yield client


def small_writes(secured: Secured, scale: float) -> None:
    with _logged_in(secured) as client:
        request = produce_request(TOPIC, batch_of(b"x"), acks=1)
        for _ in range(int(4_000 * scale)):
            answer = client.ask(request, 9)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE


def small_reads(secured: Secured, scale: float) -> None:
    with _logged_in(secured) as client:
        request = fetch_request(TOPIC, 0, max_bytes=1)
        for _ in range(int(4_000 * scale)):
            answer = client.ask(request, 12)
        assert answer.responses[0].partitions[0].records


def row(
    title: str, work: Callable[[Secured, float], None], both: tuple[Secured, Secured], scale: float
) -> None:
    """Measure one kind of work on both brokers, in turns, and print the line."""
    for secured in both:
        work(secured, scale / 2)
    noise = Noise()
    used: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        for secured, seconds in zip(both, used, strict=True):
            before = secured.broker.cpu_seconds()
            work(secured, scale)
            seconds.append(secured.broker.cpu_seconds() - before)
    ours, theirs = used
    ratio = ratio_of(theirs, ours)
    print(
        f"{title:34} Ottla {min(ours):7.3f} s  Apache Kafka {min(theirs):7.3f} s  times {ratio}  "
        f"noise {noise.share(sum(ours) + sum(theirs)):.0%}",
        flush=True,
    )


def cost_of_rules(
    title: str, work: Callable[[Secured, float], None], guarded: Secured, free: Secured, scale: float
) -> None:
    """Measure the same work on a node with access rules and on one without, in turns, and print the line."""
    for secured in (guarded, free):
        work(secured, scale / 2)
    noise = Noise()
    used: dict[Secured, list[float]] = {guarded: [], free: []}
    for number in range(RULE_ROUNDS):
        # Who comes first takes turns, too.
        for secured in (guarded, free) if number % 2 else (free, guarded):
            before = secured.broker.cpu_seconds()
            work(secured, scale)
            used[secured].append(secured.broker.cpu_seconds() - before)
    middle, low, high = (100 * (one - 1) for one in ratio_of(used[guarded], used[free]))
    total = sum(map(sum, used.values()))
    print(
        f"{title:34} access rules cost {middle:+.1f} % ({low:+.1f} to {high:+.1f}), at most "
        f"{RULE_COST_PERCENT_MAX:.0f} %: {verdict(middle <= RULE_COST_PERCENT_MAX)}  "
        f"noise {noise.share(total):.0%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    with secured_brokers() as both, node_without_rules() as free:
        cost_of_rules("writes, one after the other", small_writes, both[0], free, scale)
        cost_of_rules("reads, one after the other", small_reads, both[0], free, scale)
        row("produce 50 MB over TLS", tls_produce, both, scale)
        row("fetch 50 MB over TLS", tls_fetch, both, scale)
        row("500 logins by SCRAM-SHA-512", scram_logins, both, scale)
        row("4,000 small writes, 10 rules", small_writes, both, scale)
        for secured in both:
            add_rules(secured.broker.bootstrap, 10_000)
        row("4,000 small writes, 10,000 rules", small_writes, both, scale)


if __name__ == "__main__":
    main()
