"""Changes of a broker's own configs, which it judges before the controller is asked.

The controller does not know the configuration file of a broker. Log levels are not even passed on.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ottla.broker.serving.context import RequestContext
from ottla.metadata.configs.alter import Change, NewTexts, Situation, decide_changes, decide_replacement
from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.features import is_elr_enabled
from ottla.metadata.image import ConfigResource
from ottla.wire.config_kinds import ResourceType


def find_refused(
    resources: Sequence[Any], context: RequestContext, *, replaces: bool
) -> dict[int, ChangeRefused]:
    """Return which resources, by their place, are brokers' configs that this broker refuses to change."""
    refused: dict[int, ChangeRefused] = {}
    for place, resource in enumerate(resources):
        if resource.resource_type == ResourceType.BROKER and resource.resource_name:
            try:
                (_judge_replacement if replaces else _judge_changes)(resource, context)
            except ChangeRefused as error:
                refused[place] = error
    return refused


def _situation(context: RequestContext) -> Situation:
    return Situation(context.node.configs, is_elr_enabled(context.node.image.features))


def _judge_changes(resource: Any, context: RequestContext) -> NewTexts:
    changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
    return _judge(resource, context, lambda key, now, here: decide_changes(key, changes, now, here))


def _judge_replacement(resource: Any, context: RequestContext) -> NewTexts:
    wanted = [(config.name, config.value) for config in resource.configs]
    return _judge(resource, context, lambda key, now, here: decide_replacement(key, wanted, now, here))


def _judge(
    resource: Any, context: RequestContext, decide: Callable[[ConfigResource, Any, Situation], NewTexts]
) -> NewTexts:
    key = ConfigResource(resource.resource_type, resource.resource_name)
    return decide(key, context.node.image.configs.get(key, {}), _situation(context))
