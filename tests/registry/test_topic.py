"""The records of the topic: what is written, and what is understood of what others have written."""

import json
from typing import Any

from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.client.sync import Admin, Producer
from ottla.testing.conversation import Conversation


def _records(node: OttlaNode, topic: str) -> list[tuple[str, Any]]:
    host, _, port = node.bootstrap.rpartition(":")
    with Conversation(host, int(port)) as conversation:
        return [
            ((record.key or b"").decode(), record.value and record.value.decode())
            for record in conversation.read(topic, read_committed=False)
        ]


SCHEMA = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
ESCAPED = json.dumps(SCHEMA)


def test_records_are_those_of_confluents_registry(node: OttlaNode) -> None:
    topic = "_schemas_bytes"
    with RegistryProcess(node.bootstrap, "--topic", topic, "--group", "bytes") as registry:
        registry.register("a", json.dumps(json.loads(SCHEMA)))
        registry.register("a", SCHEMA)
        registry.ask("PUT", "/config", {"compatibility": "FULL"})
        registry.ask(
            "PUT", "/config/a", {"compatibilityGroup": "g", "compatibility": "NONE", "normalize": True}
        )
        registry.ask("PUT", "/mode/z", {"mode": "READONLY"})
        registry.register(":.c:b", '"int"')
        registry.ask("DELETE", "/subjects/a")
        registry.ask("DELETE", "/subjects/a?permanent=true")
        registry.ask("PUT", "/mode/i", {"mode": "IMPORT"})
    assert _records(node, topic) == [
        ('{"keytype":"NOOP","magic":0}', None),
        (
            '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
            f'{{"subject":"a","version":1,"id":1,"schemaType":"AVRO","schema":{ESCAPED},"deleted":false}}',
        ),
        ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"FULL"}'),
        (
            '{"keytype":"CONFIG","subject":"a","magic":0}',
            '{"subject":"a","normalize":true,"compatibilityLevel":"NONE","compatibilityGroup":"g"}',
        ),
        ('{"keytype":"MODE","subject":"z","magic":0}', '{"subject":"z","mode":"READONLY"}'),
        (
            '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
            '{"tenant":"default","context":".c"}',
        ),
        (
            '{"keytype":"SCHEMA","subject":":.c:b","version":1,"magic":1}',
            '{"subject":":.c:b","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
        ),
        ('{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', '{"subject":"a","version":1}'),
        ('{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', None),
        ('{"keytype":"CONFIG","subject":"a","magic":0}', None),
        ('{"keytype":"CLEAR_SUBJECT","subject":"i","magic":0}', '{"subject":"i"}'),
        ('{"keytype":"MODE","subject":"i","magic":0}', '{"subject":"i","mode":"IMPORT"}'),
    ]


def test_a_topic_of_another_registry_is_taken_over(node: OttlaNode) -> None:
    topic = "_schemas_foreign"

    def key(kind: str, **fields: Any) -> str:
        return json.dumps({"keytype": kind, **fields})

    written = [
        # As releases before 8 have it: no type for Avro, a hash, an older magic.
        (
            key("SCHEMA", subject="a", version=1, magic=0),
            {"subject": "a", "version": 1, "id": 41, "md5": "x", "schema": SCHEMA, "deleted": False},
        ),
        (
            key("SCHEMA", subject="b", version=3, magic=1),
            {"subject": "b", "version": 3, "id": 77, "schemaType": "JSON", "schema": "{}", "deleted": True},
        ),
        (key("CONFIG", subject="a", magic=0), {"subject": "a", "compatibilityLevel": "FULL"}),
        (key("CONFIG", subject="gone", magic=0), {"subject": "gone", "compatibilityLevel": "FULL"}),
        (key("CONFIG", subject="gone", magic=0), None),
        (key("SOMETHING_NEW", magic=9), {"x": 1}),
        ("not JSON at all", None),
    ]
    with Admin(node.bootstrap) as admin:
        admin.topics.create(topic, partitions=1, configs={"cleanup.policy": "compact"})
    with Producer(node.bootstrap) as producer:
        for name, value in written:
            producer.send(topic, None if value is None else json.dumps(value), key=name)
    with RegistryProcess(node.bootstrap, "--topic", topic, "--group", "foreign") as registry:
        assert registry.ask("GET", "/subjects") == (200, ["a"])
        assert registry.ask("GET", "/subjects?deletedOnly=true") == (200, ["b"])
        assert registry.ask("GET", "/subjects/a/versions/1")[1]["id"] == 41
        assert registry.ask("GET", "/config/a")[1] == {"compatibilityLevel": "FULL"}
        assert registry.ask("GET", "/config/gone")[0] == 404
        assert registry.register("c", SCHEMA)["id"] == 41
        assert registry.register("c2", '"float"')["id"] == 78
        assert registry.register("b", '"float"')["version"] == 4
