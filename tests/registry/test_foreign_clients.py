"""Clients of other registries that nobody here wrote: they work unchanged.

Each is skipped if it is not installed:

    npm install --prefix target @kafkajs/confluent-schema-registry
    go build -C tests/registry/foreign/go -o ../../../../target/franz-go-sr .
    pip install python-schema-registry-client
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.registry_process import RegistryProcess

HERE = Path(__file__).parent / "foreign"
TARGET = Path(__file__).parent.parent.parent / "target"
MODULES = TARGET / "node_modules"
FRANZ_GO = TARGET / "franz-go-sr"
TIMEOUT_S = 120


def test_kafkajs_registers_encodes_and_decodes(registry: RegistryProcess, subject: str) -> None:
    if shutil.which("node") is None or not (MODULES / "@kafkajs/confluent-schema-registry").exists():
        pytest.skip("@kafkajs/confluent-schema-registry is not installed in target/node_modules")
    environment = {**os.environ, "NODE_PATH": str(MODULES)}
    said = _run("node", str(HERE / "kafkajs.cjs"), registry.url, subject, environment=environment)
    assert [(one["type"], one["a"]) for one in said] == [("AVRO", 7), ("JSON", 7), ("PROTOBUF", 7)]
    # It leaves out the path to the message, which other clients write.
    payloads = {"AVRO": "0e", "JSON": b'{"a":7}'.hex(), "PROTOBUF": "0807"}
    for one in said:
        assert one["latest"] == one["id"]
        assert one["encoded"] == f"00{one['id']:08x}{payloads[one['type']]}"


def test_franz_go_registers_looks_up_checks_and_deletes(registry: RegistryProcess, subject: str) -> None:
    if not FRANZ_GO.exists():
        pytest.skip("target/franz-go-sr is not built")
    said = _run(str(FRANZ_GO), registry.url, subject)
    assert said["version"] == 1
    assert json.loads(said["schema"])["name"] == "R"
    assert said["is_compatible"] is False, "a field without a default was added"
    assert said["level"] == "FULL"
    assert said["encoded"] == f"00{said['id']:08x}0e"
    assert said["deleted"] == [1]
    assert subject in said["then"], "an error that names the subject"


def test_python_schema_registry_client_registers_and_serializes(
    registry: RegistryProcess, subject: str
) -> None:
    client = pytest.importorskip("schema_registry.client", reason="it is not installed")
    serializers = pytest.importorskip("schema_registry.serializers")
    ours = client.SchemaRegistryClient({"url": registry.url})
    avro = client.schema.AvroSchema({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    schema_id = ours.register(subject, avro)
    assert ours.check_version(subject, avro).version == 1
    assert ours.get_by_id(schema_id).name == "R"
    assert ours.get_versions(subject) == [1]
    assert subject in ours.get_subjects()
    serializer = serializers.AvroMessageSerializer(ours)
    encoded = serializer.encode_record_with_schema(subject, avro, {"a": 7})
    assert encoded.hex() == f"00{schema_id:08x}0e"
    assert serializer.decode_message(encoded) == {"a": 7}
    assert ours.update_compatibility("FULL", subject) is True
    assert ours.get_compatibility(subject) == "FULL"
    wider = client.schema.AvroSchema(
        {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}
    )
    assert ours.test_compatibility(subject, wider) is False
    assert ours.delete_subject(subject) == [1]


def _run(*command: str, environment: dict[str, str] | None = None) -> Any:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
