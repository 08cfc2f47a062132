"""`ottla schema`, `ottla consume --registry` and `ottla up --registry`."""

import json
import subprocess
from pathlib import Path

from click.testing import CliRunner, Result
from tests.support.ottla_node import OttlaNode, ottla_command
from tests.support.registry_process import RegistryProcess

from ottla.cli.main import main
from ottla.client.registry import AvroDeserializer, AvroSerializer, ProtobufSerializer, RegistryClient
from ottla.client.sync import Consumer, Producer
from ottla.model.ids import TopicPartition
from ottla.testing.ports import free_port

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
WRONG = {**ORDER, "fields": [*ORDER["fields"], {"name": "to", "type": "string"}]}


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_schemas_are_registered_checked_compared_and_deleted(
    registry: RegistryProcess, subject: str, tmp_path: Path
) -> None:
    files = {}
    for name, schema in (("order", ORDER), ("later", LATER), ("wrong", WRONG)):
        files[name] = tmp_path / f"{name}.avsc"
        files[name].write_text(json.dumps(schema))
    at = ("--registry", registry.url)
    assert "version 1" in _run("schema", "register", subject, str(files["order"]), *at).stdout
    assert _run("schema", "check", subject, str(files["later"]), *at).exit_code == 0
    refused = _run("schema", "check", subject, str(files["wrong"]), *at)
    assert refused.exit_code == 1
    assert "The field 'to' at '/fields/1'" in refused.stderr
    assert _run("schema", "register", subject, str(files["wrong"]), *at).exit_code == 1
    made = json.loads(_run("schema", "register", subject, str(files["later"]), "--json", *at).stdout)
    assert made["version"] == 2
    listed = json.loads(_run("schema", "list", subject, "--json", *at).stdout)
    assert listed == [{"subject": subject, "versions": [1, 2], "id": made["id"], "type": "AVRO"}]
    assert json.loads(_run("schema", "get", subject, "--version", "1", *at).stdout) == ORDER
    assert json.loads(_run("schema", "get", "--id", str(made["id"]), *at).stdout) == LATER
    assert '+      "name": "note",' in _run("schema", "diff", subject, *at).stdout
    assert _run("schema", "delete", subject, *at).exit_code == 0
    assert _run("schema", "delete", subject, "--permanent", "--yes", *at).exit_code == 0
    assert "40401" in _run("schema", "get", subject, *at).stderr


def test_consume_prints_what_the_registry_knows(
    node: OttlaNode, registry: RegistryProcess, subject: str
) -> None:
    with RegistryClient(registry.url) as client:
        avro = AvroSerializer(client, json.dumps(ORDER))
        proto = ProtobufSerializer(client, 'syntax = "proto3"; message P { int32 n = 1; }')
        with Producer(node.bootstrap) as producer:
            producer.send(subject, avro(subject, {"id": 7}), key="a")
            producer.send(subject, proto(f"{subject}-p", {"n": 5}), key="b")
            producer.send(subject, b"plain", key="c")
    done = _run("consume", subject, "--bootstrap", node.bootstrap, "--registry", registry.url)
    assert done.stdout.splitlines() == ['a\t{"id":7}', 'b\t{"n":5}', "c\tplain"]


def test_produce_writes_json_by_a_schema(
    node: OttlaNode, registry: RegistryProcess, subject: str, tmp_path: Path
) -> None:
    at = ("--bootstrap", node.bootstrap, "--registry", registry.url)
    order, proto, key = tmp_path / "order.avsc", tmp_path / "p.proto", tmp_path / "key.json"
    order.write_text(json.dumps(ORDER))
    proto.write_text('syntax = "proto3"; message P { int32 n = 1; }')
    key.write_text('{"type": "object", "required": ["shop"]}')
    assert "40401" in _run("produce", subject, "-v", '{"id": 7}', *at).stderr, "there is no schema yet"
    _run("produce", subject, "-v", '{"id": 7}', "--value-schema", str(order), *at)
    done = _run("produce", subject, "-v", '{"id": 8}', *at)
    assert done.exit_code == 0, done.stderr
    made = json.loads(_run("schema", "list", f"{subject}-value", "--registry", registry.url, "--json").stdout)
    by_id = ("--value-schema", str(made[0]["id"]), "--key-schema", str(key), "-k", '{"shop": 3}')
    done = _run("produce", subject, "-v", '{"id": 9}', *by_id, *at)
    assert done.exit_code == 0, done.stderr
    printed = _run("consume", subject, *at).stdout.splitlines()
    assert printed == ['{"id":7}', '{"id":8}', '{"shop":3}\t{"id":9}']
    with RegistryClient(registry.url) as client, Consumer(node.bootstrap) as consumer:
        consumer.assign([TopicPartition(subject, 0)])
        consumer.seek_to_beginning()
        avro = AvroDeserializer(client)
        assert avro(subject, next(consumer).value) == {"id": 7}
    done = _run("produce", f"{subject}-p", "-v", '{"n": 5}', "--value-schema", str(proto), *at)
    assert done.exit_code == 0, done.stderr
    assert _run("consume", f"{subject}-p", *at).stdout == '{"n":5}\n'


def test_produce_says_what_does_not_fit(
    node: OttlaNode, registry: RegistryProcess, subject: str, tmp_path: Path
) -> None:
    at = ("--bootstrap", node.bootstrap, "--registry", registry.url)
    order = tmp_path / "order.avsc"
    order.write_text(json.dumps(ORDER))
    said = _run("produce", subject, "-v", '{"id": "x"}', "--value-schema", str(order), *at).stderr
    assert said.startswith("Error: record 1 does not fit its schema: ")
    assert "is not JSON" in _run("produce", subject, "-v", "{id", *at).stderr
    assert "is not a schema" in _run("produce", subject, "-v", "1", "--value-schema", "x.txt", *at).stderr
    missing = str(tmp_path / "missing.avsc")
    assert "cannot be read" in _run("produce", subject, "-v", "1", "--value-schema", missing, *at).stderr
    alone = _run("produce", subject, "-v", "1", "--value-schema", "latest", "--bootstrap", node.bootstrap)
    assert "need --registry" in alone.stderr


def test_up_starts_a_registry_beside_the_node(tmp_path: Path) -> None:
    command = ottla_command("up", "--registry", "--port", str(free_port()), "--data", str(tmp_path / "data"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline().strip() for _ in range(2)]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
    assert lines[0].startswith("ready 127.0.0.1:")
    assert lines[1] in ("ready http://127.0.0.1:8081", "")  # empty: something else has the port
