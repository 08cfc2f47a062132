"""A schema registry that is slow or does not answer: others do not wait for it, and no record is lost."""

import asyncio
import threading
from typing import Any

import pytest

from ottla.client.registry.client import RegistryRefused, RegistryUnreachable
from ottla.connect.catalog import all_plugins
from ottla.connect.converters.avro import AvroConverter
from ottla.connect.converters.protobuf import ProtobufConverter
from ottla.connect.converters.registry_client import conversion_error
from ottla.connect.data.record import Record
from ottla.connect.data.schema import STRING, decimal_schema, from_primitive, to_primitive
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.plugins import Plugin, PluginKind, Plugins
from ottla.connect.running.conversion import Conversion
from ottla.connect.running.tolerance import Tolerance
from ottla.connect.settings import WorkerSettings

NOBODY = "http://127.0.0.1:1"
PATIENCE_S = 60


class _Waiting:
    """A converter that waits until the loop has done something else."""

    waits = True
    others_went_on = threading.Event()

    def __init__(self, _config: Any) -> None:
        pass

    def to_bytes(self, _topic: str, _schema: Any, _value: Any) -> bytes:
        return b"yes" if self.others_went_on.wait(PATIENCE_S) else b"no"


def test_other_connectors_go_on_while_a_converter_waits_for_its_registry() -> None:
    waiting = Plugin("test.Waiting", PluginKind.CONVERTER, _Waiting)
    plugins = Plugins((*all_plugins().all, waiting))
    config = {"value.converter": "test.Waiting"}
    conversion = Conversion(plugins, config, WorkerSettings().defaults, Tolerance(config, "c", 0))
    record = Record("t", None, None, None, STRING, "x")

    async def go_on() -> None:
        _Waiting.others_went_on.set()

    async def both() -> Any:
        converted, _ = await asyncio.gather(conversion.for_each([record], conversion.serialize), go_on())
        return converted

    assert [item.value for item in asyncio.run(both())] == [b"yes"]


@pytest.mark.parametrize("tolerance", ["none", "all"])
@pytest.mark.parametrize("kind", ["avro.Avro", "json.JsonSchema", "protobuf.Protobuf"])
def test_a_registry_that_is_down_fails_the_task_for_now_and_drops_no_record(
    kind: str, tolerance: str
) -> None:
    config = {
        "value.converter": f"io.confluent.connect.{kind}Converter",
        "value.converter.schema.registry.url": NOBODY,
        "errors.tolerance": tolerance,
    }
    conversion = Conversion(all_plugins(), config, WorkerSettings().defaults, Tolerance(config, "c", 0))
    record = Record("t", None, None, None, STRING, "x")

    with pytest.raises(ConnectError, match="no schema registry answers") as raised:
        asyncio.run(conversion.for_each([record], conversion.serialize))

    assert type(raised.value) is ConnectError, "a task that met this is tried again"


@pytest.mark.parametrize(
    ("error", "is_for_now"),
    [
        (RegistryUnreachable("nobody"), True),
        (RegistryRefused(50003, "the leader is gone"), True),
        (RegistryRefused(503, "HTTP 503"), True),
        (RegistryRefused(409, "not compatible"), False),
        (RegistryRefused(42201, "not a schema"), False),
        (ValueError("not a value"), False),
    ],
)
def test_only_what_may_work_later_is_tried_again(error: Exception, is_for_now: bool) -> None:
    assert isinstance(conversion_error(error, "reading"), DataError) is not is_for_now


@pytest.mark.parametrize("converter", [AvroConverter, ProtobufConverter])
def test_values_without_schemas_do_not_fill_the_memory(converter: Any) -> None:
    made = converter({"schema.registry.url": NOBODY})
    for _ in range(3):
        with pytest.raises(ConnectError):
            made.to_bytes("t", None, {"a": 1})

    assert len(made._by_text) == 1


def test_decimals_keep_all_their_digits() -> None:
    schema = decimal_schema(4)
    unscaled = int("9" * 60)

    value = from_primitive(schema, unscaled.to_bytes(26, "big", signed=True))

    assert str(value) == "9" * 56 + "." + "9" * 4
    assert int.from_bytes(to_primitive(schema, value), "big", signed=True) == unscaled
