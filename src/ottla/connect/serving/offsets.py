"""Routes for offsets: of sources in the offsets topic, of sinks in their consumer groups."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.admin.admin import Admin
from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.errors import BrokerError, ClientError
from ottla.connect.configs.validation import connector_of
from ottla.connect.errors import ConnectError, RestError, not_found
from ottla.connect.plugins import Offset
from ottla.connect.running.making import sink_group
from ottla.connect.serving.call import Answer, Call
from ottla.connect.store.configs import STOPPED
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_ALTERED: Final = "The offsets for this connector have been altered successfully"
_RESET: Final = "The offsets for this connector have been reset successfully"
_TOPIC: Final = "kafka_topic"
_PARTITION: Final = "kafka_partition"
_OFFSET: Final = "kafka_offset"


async def get_offsets(call: Call) -> Answer:
    """Show where a connector goes on."""
    name, config = call.connector, _config(call)
    if call.worker.is_source(config):
        await call.worker.store.offset_log.catch_up()
        found = call.worker.store.offsets.of(name)
        return Answer(body={"offsets": [{"partition": part, "offset": offset} for part, offset in found]})
    async with Admin(properties=call.worker.properties) as admin:
        committed = await admin.group_offsets.list(sink_group(name, config))
    offsets = [
        {
            "partition": {_TOPIC: where.topic, _PARTITION: where.partition},
            "offset": {_OFFSET: item.offset},
        }
        for where, item in sorted(committed.items())
    ]
    return Answer(body={"offsets": offsets})


async def alter_offsets(call: Call) -> Answer:
    """Change where a stopped connector goes on; null removes an offset."""
    body = call.json()
    given = body.get("offsets") if isinstance(body, dict) else None
    if given is not None and not isinstance(given, list):
        raise RestError(500, "Cannot read the body: `offsets` is not a list")
    if not given:
        raise RestError(400, "Partitions / offsets need to be provided for an alter offsets request")
    config = _stopped_config(call)
    offsets = [_offset(item) for item in given]
    if call.worker.is_source(config):
        await _alter_source(call, config, offsets)
    else:
        await _alter_sink(call, config, [_sink_offset(*item) for item in offsets])
    return Answer(body={"message": _ALTERED})


async def reset_offsets(call: Call) -> Answer:
    """Have a stopped connector begin at the beginning."""
    config = _stopped_config(call)
    name = call.connector
    if call.worker.is_source(config):
        await call.worker.store.offset_log.catch_up()
        known: list[Offset] = [(part, None) for part, _ in call.worker.store.offsets.of(name)]
        if known:
            await call.worker.write_offsets(name, known)
        return Answer(body={"message": _RESET})
    await _alter_in_target(call, config, None)
    async with Admin(properties=call.worker.properties) as admin:
        try:
            await admin.groups.delete(sink_group(name, config))
        except BrokerError as error:
            if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise RestError(
                    500, f"Failed to reset consumer group offsets for connector {name}"
                ) from error
    return Answer(body={"message": _RESET})


def _config(call: Call) -> Mapping[str, str]:
    config = call.worker.configs.connectors.get(call.connector)
    if config is None:
        raise not_found(call.connector)
    try:
        return call.worker.resolve(config)
    except ConnectError as error:
        raise RestError(500, str(error)) from error


def _stopped_config(call: Call) -> Mapping[str, str]:
    config, name = _config(call), call.connector
    configs = call.worker.configs
    if configs.target_state(name) != STOPPED or configs.tasks.get(name):
        raise RestError(
            400,
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done "
            "for the specified connector by issuing a 'PUT' request to the "
            f"'/connectors/{name}/stop' endpoint",
        )
    return config


def _offset(item: Any) -> Offset:
    partition, offset = (
        (item.get("partition"), item.get("offset")) if isinstance(item, dict) else (None, None)
    )
    if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
        raise RestError(500, "Cannot read the body: each offset has a `partition` and an `offset`")
    return partition, offset


async def _alter_source(call: Call, config: Mapping[str, str], offsets: list[Offset]) -> None:
    try:
        connector_of(call.worker.plugins, config).check_offsets(config, offsets)
    except ConnectError as error:
        raise RestError(500, str(error)) from error
    await call.worker.write_offsets(call.connector, offsets)


def _sink_offset(
    partition: Mapping[str, Any], offset: Mapping[str, Any] | None
) -> tuple[TopicPartition, int | None]:
    if _TOPIC not in partition or _PARTITION not in partition:
        raise RestError(
            400,
            f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'",
        )
    if offset is not None and _OFFSET not in offset:
        raise RestError(
            400, f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'"
        )
    where = TopicPartition(str(partition[_TOPIC]), _number(partition[_PARTITION], "partition", "Partition"))
    return where, None if offset is None else _number(offset[_OFFSET], "offset", "Offset")


def _number(value: Any, what: str, capital: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise RestError(
            400,
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{value}'. {capital} "
            "values for sink connectors need to be integers.",
        ) from None


async def _alter_sink(
    call: Call, config: Mapping[str, str], offsets: list[tuple[TopicPartition, int | None]]
) -> None:
    name = call.connector
    group = sink_group(name, config)
    kept = {where: CommittedOffset(offset) for where, offset in offsets if offset is not None}
    removed = [where for where, offset in offsets if offset is None]
    await _alter_in_target(call, config, dict(offsets))
    try:
        async with Admin(properties=call.worker.properties) as admin:
            if kept:
                (await admin.group_offsets.alter(group, kept)).check()
            if removed:
                (await admin.group_offsets.delete(group, removed)).check()
    except ClientError as error:
        raise RestError(500, f"Failed to alter consumer group offsets for connector {name}") from error


async def _alter_in_target(
    call: Call, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None] | None
) -> None:
    """Change the offsets of a sink that keeps them where its data is."""
    alter = connector_of(call.worker.plugins, config).alter_sink_offsets
    if alter is not None:
        try:
            await asyncio.to_thread(alter, call.connector, config, offsets)
        except ConnectError as error:
            raise RestError(500, str(error)) from error
