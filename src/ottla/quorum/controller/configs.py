"""AlterConfigs and IncrementalAlterConfigs. Whether a value is allowed is judged by
`metadata.configs.alter`."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ottla.metadata.configs.alter import (
    MIN_ISR,
    REPEATED_RESOURCE,
    Change,
    NewTexts,
    Situation,
    decide_changes,
    decide_replacement,
    find_repeated_resources,
)
from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.image import ConfigResource
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.quorum.controller.partitions.eligible_leaders import forget_eligible_leaders
from ottla.quorum.controller.producer_ids import own_range
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_configs, incremental_alter_configs
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.metadata_records.configs import ConfigRecord

Outcome = tuple[ConfigResource, Refusal | None]


def refuse_incremental_alter_configs(
    ask: IncrementalAlterConfigsRequest, refusal: Refusal
) -> IncrementalAlterConfigsResponse:
    """Refuse the changes of all resources."""
    return _incremental_response([(resource, refusal) for resource in _resources(ask)])


@decides(IncrementalAlterConfigsRequest, refuse=refuse_incremental_alter_configs)
def decide_incremental_alter_configs(
    view: ControllerView, ask: IncrementalAlterConfigsRequest
) -> Decision[IncrementalAlterConfigsResponse]:
    """Change single configs. Each resource is decided on its own."""

    def judge(index: int, resource: ConfigResource, situation: Situation) -> NewTexts:
        changes = [
            Change(config.name, config.config_operation, config.value)
            for config in ask.resources[index].configs
        ]
        return decide_changes(resource, changes, view.image.configs.get(resource, {}), situation)

    outcomes, records = _judge_all(view, _resources(ask), judge)
    reply = _incremental_response(outcomes)
    return Decision(reply) if ask.validate_only else Decision(reply, records)


def _incremental_response(outcomes: Sequence[Outcome]) -> IncrementalAlterConfigsResponse:
    responses = tuple(
        incremental_alter_configs.AlterConfigsResourceResponse(
            error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
            error_message=None if refusal is None else refusal.message,
            resource_type=resource.type,
            resource_name=resource.name,
        )
        for resource, refusal in outcomes
    )
    return IncrementalAlterConfigsResponse(responses=responses)


def refuse_alter_configs(ask: AlterConfigsRequest, refusal: Refusal) -> AlterConfigsResponse:
    """Refuse the changes of all resources."""
    return _response([(resource, refusal) for resource in _resources(ask)])


@decides(AlterConfigsRequest, refuse=refuse_alter_configs)
def decide_alter_configs(view: ControllerView, ask: AlterConfigsRequest) -> Decision[AlterConfigsResponse]:
    """Replace all configs of resources. Each resource is decided on its own."""

    def judge(index: int, resource: ConfigResource, situation: Situation) -> NewTexts:
        wanted = [(config.name, config.value) for config in ask.resources[index].configs]
        return decide_replacement(resource, wanted, view.image.configs.get(resource, {}), situation)

    outcomes, records = _judge_all(view, _resources(ask), judge)
    reply = _response(outcomes)
    return Decision(reply) if ask.validate_only else Decision(reply, records)


def _response(outcomes: Sequence[Outcome]) -> AlterConfigsResponse:
    responses = tuple(
        alter_configs.AlterConfigsResourceResponse(
            error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
            error_message=None if refusal is None else refusal.message,
            resource_type=resource.type,
            resource_name=resource.name,
        )
        for resource, refusal in outcomes
    )
    return AlterConfigsResponse(responses=responses)


def _resources(ask: AlterConfigsRequest | IncrementalAlterConfigsRequest) -> list[ConfigResource]:
    return [ConfigResource(one.resource_type, one.resource_name) for one in ask.resources]


def _judge_all(
    view: ControllerView,
    resources: Sequence[ConfigResource],
    judge: Callable[[int, ConfigResource, Situation], NewTexts],
) -> tuple[list[Outcome], list[Any]]:
    situation = Situation(view.configs, view.elr_enabled, is_for_others=True)
    repeated = find_repeated_resources(resources)
    outcomes: list[Outcome] = []
    records: list[Any] = []
    for index, resource in enumerate(resources):
        try:
            _check_once(resource, repeated)
            new_records = _records(view, resource, judge(index, resource, situation))
            check_record_count(len(records) + len(new_records))
        except ChangeRefused as refused:
            outcomes.append((resource, Refusal(refused.error_code, refused.message)))
        except Refusal as refusal:
            outcomes.append((resource, refusal))
        else:
            outcomes.append((resource, None))
            records += new_records
    return outcomes, records


def _check_once(resource: ConfigResource, repeated: Collection[ConfigResource]) -> None:
    if resource in repeated:
        raise Refusal(ErrorCode.INVALID_REQUEST, REPEATED_RESOURCE)


def _records(view: ControllerView, resource: ConfigResource, texts: NewTexts) -> list[Any]:
    _check_exists(view, resource)
    records: list[Any] = [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=text)
        for name, text in texts.items()
    ]
    if MIN_ISR in texts and view.elr_enabled:
        is_topic = resource.type == ResourceType.TOPIC
        records += forget_eligible_leaders(view, resource.name if is_topic else "")
    return records + own_range(view, texts)


def _check_exists(view: ControllerView, resource: ConfigResource) -> None:
    if resource.type == ResourceType.TOPIC and resource.name not in view.image.topics.names:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    if resource.type == ResourceType.BROKER and resource.name:
        known = view.image.brokers.keys() | view.image.controllers.keys()
        if int(resource.name) not in known:
            raise Refusal(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {resource.name} is registered."
            )
