"""Configs of topics, brokers, broker loggers, client metrics and groups: describe and change."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, outcome_of
from ottla.client.errors import ClientError
from ottla.wire.config_kinds import AlterOperation, ConfigSource, ConfigType, ResourceType
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest


class ConfigResource(NamedTuple):
    """One thing that has configs. A broker is named by its id; "" is the default of all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} {self.name}" if self.name else f"default {kind}"


class ConfigSynonym(NamedTuple):
    """A config by which the value could be set, too, with its value there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Config:
    """One config. A sensitive value is never told: it is None."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Return whether it has its default value."""
        return self.source is ConfigSource.DEFAULT


class ConfigChange(NamedTuple):
    """One change of one config."""

    name: str
    operation: AlterOperation
    value: str | None = None


class Configs:
    """The configs of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(
        self,
        kind: ResourceType,
        name: str,
        *,
        keys: Collection[str] | None = None,
        synonyms: bool = True,
        documentation: bool = False,
    ) -> dict[str, Config]:
        """Return the configs of one resource by name; of those in `keys` only, when given."""
        resource = ConfigResource(kind, name)
        found = await self.describe_many(
            [resource], keys=keys, synonyms=synonyms, documentation=documentation
        )
        return found[resource]

    async def describe_many(
        self,
        resources: Collection[ConfigResource],
        *,
        keys: Collection[str] | None = None,
        synonyms: bool = True,
        documentation: bool = False,
    ) -> Results[ConfigResource, dict[str, Config]]:
        """Return the configs of resources."""
        outcomes: dict[ConfigResource, dict[str, Config] | ClientError] = {}
        for node_id, those in _by_node(resources).items():
            request = DescribeConfigsRequest(
                resources=tuple(
                    DescribeConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configuration_keys=None if keys is None else tuple(keys),
                    )
                    for resource in those
                ),
                include_synonyms=synonyms,
                include_documentation=documentation,
            )
            try:
                answer = await self._ask(node_id, request)
            except ClientError as error:
                outcomes.update(dict.fromkeys(those, error))
                continue
            for item in answer.results:
                outcomes[_resource(item)] = _described(item)
        return Results({resource: outcomes[resource] for resource in resources})

    async def alter(
        self,
        kind: ResourceType,
        name: str,
        values: Mapping[str, str | None] | None = None,
        *,
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change some configs of one resource and leave the others as they are.

        None takes a value back, so that what holds otherwise holds again. `append` and `subtract` put entries
        into lists and take them out.
        """
        changes = (
            *(
                ConfigChange(key, AlterOperation.DELETE if value is None else AlterOperation.SET, value)
                for key, value in (values or {}).items()
            ),
            *(ConfigChange(key, AlterOperation.APPEND, value) for key, value in (append or {}).items()),
            *(ConfigChange(key, AlterOperation.SUBTRACT, value) for key, value in (subtract or {}).items()),
        )
        resource = ConfigResource(kind, name)
        (await self.alter_many({resource: changes}, validate_only=validate_only)).check()

    async def alter_many(
        self, changes: Mapping[ConfigResource, Collection[ConfigChange]], *, validate_only: bool = False
    ) -> Results[ConfigResource, None]:
        """Change configs of resources. Needs a broker of 2.3 or newer."""
        outcomes: dict[ConfigResource, ClientError | None] = {}
        for node_id, those in _by_node(changes).items():
            request = IncrementalAlterConfigsRequest(
                resources=tuple(
                    AlterConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configs=tuple(
                            AlterableConfig(name=name, config_operation=operation, value=value)
                            for name, operation, value in changes[resource]
                        ),
                    )
                    for resource in those
                ),
                validate_only=validate_only,
            )
            try:
                answer = await self._alter(node_id, request)
            except ClientError as error:
                outcomes.update(dict.fromkeys(those, error))
                continue
            for item in answer.responses:
                resource = _resource(item)
                outcomes[resource] = outcome_of(
                    item.error_code, f"cannot change configs of {resource}", item.error_message, None
                )
        return Results({resource: outcomes[resource] for resource in changes})

    async def list_resources(self, *types: ResourceType) -> tuple[ConfigResource, ...]:
        """List what has configs of its own, of some types or of all. Before 4.1 only client metrics."""
        request = ListConfigResourcesRequest(resource_types=tuple(types))
        answer = await self._routes.ask_any(request)
        resources = (
            ConfigResource(ResourceType(item.resource_type), item.resource_name)
            for item in answer.config_resources
            if item.resource_type in _RESOURCE_TYPES
        )
        return tuple(sorted(resources))

    async def _ask(self, node_id: int | None, request: Any) -> Any:
        if node_id is None:
            return await self._routes.ask_any(request)
        return await self._routes.ask_node(node_id, request)

    async def _alter(self, node_id: int | None, request: Any) -> Any:
        # Doing any of the four operations twice is the same as doing it once, so a lost answer is no harm.
        if node_id is not None:
            return await self._routes.ask_node(node_id, request)
        return await self._routes.ask_controller(
            request, lambda found: (item.error_code for item in found.responses), repeatable=True
        )


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Group resources by the broker that must be asked: a broker itself knows its configs, any the others."""
    grouped: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        is_broker = resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name
        grouped.setdefault(int(resource.name) if is_broker else None, []).append(resource)
    return grouped


def _resource(item: Any) -> ConfigResource:
    return ConfigResource(ResourceType(item.resource_type), item.resource_name)


def _described(item: DescribeConfigsResult) -> dict[str, Config] | ClientError:
    found = {config.name: _config(config) for config in item.configs}
    return outcome_of(item.error_code, f"cannot describe {_resource(item)}", item.error_message, found)


def _config(item: DescribeConfigsResourceResult) -> Config:
    return Config(
        name=item.name,
        value=item.value,
        source=_source(item.config_source),
        type=ConfigType(item.config_type) if item.config_type in _CONFIG_TYPES else ConfigType.UNKNOWN,
        is_read_only=item.read_only,
        is_sensitive=item.is_sensitive,
        synonyms=tuple(ConfigSynonym(same.name, same.value, _source(same.source)) for same in item.synonyms),
        documentation=item.documentation or None,
    )


_RESOURCE_TYPES = frozenset(ResourceType)
_CONFIG_TYPES = frozenset(ConfigType)
_CONFIG_SOURCES = frozenset(ConfigSource)


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in _CONFIG_SOURCES else ConfigSource.UNKNOWN
