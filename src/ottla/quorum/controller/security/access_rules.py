"""Access rules (ACLs): created and deleted by decision, described from an image."""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.image import MetadataImage
from ottla.model.uuid import Uuid
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import (
    RECORDS_MAX,
    ControllerView,
    Decision,
    Refusal,
)
from ottla.quorum.random_id import random_id
from ottla.security.access_rules import (
    AccessRule,
    PatternType,
    ResourcePattern,
    RuleFilter,
    find_fault,
    rule_of,
)
from ottla.security.rights import NO_AUTHORIZER
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ottla.wire.metadata_records.access_control import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)

_TOO_MANY = Refusal(
    ErrorCode.INVALID_REQUEST, f"One request can change at most {RECORDS_MAX} access rules; send several."
)
_DISABLED = Refusal(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def refuse_create_acls(ask: CreateAclsRequest, refusal: Refusal) -> CreateAclsResponse:
    """Refuse all rules."""
    return CreateAclsResponse(results=(_creation_result(refusal),) * len(ask.creations))


@decides(CreateAclsRequest, refuse=refuse_create_acls)
def decide_create_acls(view: ControllerView, ask: CreateAclsRequest) -> Decision[CreateAclsResponse]:
    """Make rules. Each is decided on its own, and one that is there already is not made again."""
    if not view.configs.node.authorizer_class_name:
        return Decision(refuse_create_acls(ask, _DISABLED))
    if len(ask.creations) > RECORDS_MAX:
        return Decision(refuse_create_acls(ask, _TOO_MANY))
    names = {creation.resource_name for creation in ask.creations}
    # Most rules are about other resources, and making a rule of each record would take long.
    known = {rule_of(record) for record in view.image.acls.values() if record.resource_name in names}
    results: list[AclCreationResult] = []
    records: list[Any] = []
    for creation in ask.creations:
        rule = _rule(creation)
        fault = find_fault(rule)
        if fault is not None:
            results.append(_creation_result(Refusal(ErrorCode.INVALID_REQUEST, fault)))
            continue
        results.append(_creation_result(None))
        if rule not in known:
            known.add(rule)
            records.append(_record(random_id(view.random), rule))
    return Decision(CreateAclsResponse(results=tuple(results)), records)


def _creation_result(refusal: Refusal | None) -> AclCreationResult:
    if refusal is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=refusal.error_code, error_message=refusal.message)


def _rule(creation: AclCreation) -> AccessRule:
    return AccessRule(
        ResourcePattern(creation.resource_type, creation.resource_name, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _record(rule_id: Uuid, rule: AccessRule) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=rule_id,
        resource_type=rule.resource.resource_type,
        resource_name=rule.resource.name,
        pattern_type=rule.resource.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def refuse_delete_acls(ask: DeleteAclsRequest, refusal: Refusal) -> DeleteAclsResponse:
    """Refuse all filters."""
    return DeleteAclsResponse(filter_results=(_filter_refused(refusal),) * len(ask.filters))


@decides(DeleteAclsRequest, refuse=refuse_delete_acls)
def decide_delete_acls(view: ControllerView, ask: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    """Delete the rules that filters select, and say which they were."""
    if not view.configs.node.authorizer_class_name:
        return Decision(refuse_delete_acls(ask, _DISABLED))
    deleted: dict[Uuid, Any] = {}
    results: list[DeleteAclsFilterResult] = []
    for one in ask.filters:
        rule_filter = _filter(one, one.pattern_type_filter)
        fault = rule_filter.find_fault()
        if fault is not None:
            results.append(_filter_refused(Refusal(ErrorCode.INVALID_REQUEST, fault)))
            continue
        selected = list(_select(view.image, rule_filter))
        for rule_id, _ in selected:
            deleted[rule_id] = RemoveAccessControlEntryRecord(id=rule_id)
        results.append(
            DeleteAclsFilterResult(
                error_message=None, matching_acls=tuple(_deleted_rule(rule) for _, rule in selected)
            )
        )
    if len(deleted) > RECORDS_MAX:
        return Decision(refuse_delete_acls(ask, _TOO_MANY))
    return Decision(DeleteAclsResponse(filter_results=tuple(results)), tuple(deleted.values()))


def _filter_refused(refusal: Refusal) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=refusal.error_code, error_message=refusal.message, matching_acls=()
    )


def _filter(ask: DeleteAclsFilter | DescribeAclsRequest, pattern_type: int) -> RuleFilter:
    return RuleFilter(
        ask.resource_type_filter,
        ask.resource_name_filter,
        pattern_type,
        ask.principal_filter,
        ask.host_filter,
        ask.operation,
        ask.permission_type,
    )


def _select(image: MetadataImage, rule_filter: RuleFilter) -> Iterator[tuple[Uuid, AccessRule]]:
    name = None if rule_filter.pattern_type == PatternType.MATCH else rule_filter.name
    for rule_id, record in image.acls.items():
        if name is not None and name != record.resource_name:
            continue
        rule = rule_of(record)
        if rule_filter.selects(rule):
            yield rule_id, rule


def _deleted_rule(rule: AccessRule) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=rule.resource.resource_type,
        resource_name=rule.resource.name,
        pattern_type=rule.resource.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def describe_acls(image: MetadataImage, ask: DescribeAclsRequest) -> DescribeAclsResponse:
    """List the rules that a filter selects, by resource."""
    rule_filter = _filter(ask, ask.pattern_type_filter)
    fault = rule_filter.find_fault()
    if fault is not None:
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=fault, resources=())
    resources: dict[ResourcePattern, list[AclDescription]] = {}
    for _, rule in _select(image, rule_filter):
        resources.setdefault(rule.resource, []).append(
            AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
        )
    return DescribeAclsResponse(
        error_message=None,
        resources=tuple(
            DescribeAclsResource(
                resource_type=resource.resource_type,
                resource_name=resource.name,
                pattern_type=resource.pattern_type,
                acls=tuple(rules),
            )
            for resource, rules in resources.items()
        ),
    )
