"""Access rules: made and removed by decision, described from an image.

Whether rules are kept at all, and who may change them, is not asked here: without an authorizer a broker
answers SECURITY_DISABLED before it gets this far.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.image import MetadataImage
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.quorum.random_id import random_id
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

NO_AUTHORIZER: Final = "No Authorizer is configured."
ANY: Final = 1
_RESOURCE_TYPES: Final = range(2, 8)
_CLUSTER: Final = 4
_CLUSTER_NAME: Final = "kafka-cluster"
_OPERATIONS: Final = range(2, 16)
_DENY, _ALLOW = 2, 3
_MATCH: Final = 2
_LITERAL, _PREFIXED = 3, 4
_WILDCARD: Final = "*"


class Filter(NamedTuple):
    """Which rules are meant. None, and the number of ANY, match everything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, rule: AccessControlEntryRecord) -> bool:
        """Say whether a rule is meant."""
        return (
            self.resource_type in (ANY, rule.resource_type)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (ANY, rule.operation)
            and self.permission_type in (ANY, rule.permission_type)
        )

    def check(self) -> None:
        """Refuse a filter with numbers that mean nothing."""
        is_known = (
            (self.resource_type == ANY or self.resource_type in _RESOURCE_TYPES)
            and self.pattern_type in (ANY, _MATCH, _LITERAL, _PREFIXED)
            and (self.operation == ANY or self.operation in _OPERATIONS)
            and self.permission_type in (ANY, _DENY, _ALLOW)
        )
        if not is_known:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"The filter {self} has an unknown element.")

    def _matches_name(self, rule: AccessControlEntryRecord) -> bool:
        if self.pattern_type not in (ANY, _MATCH, rule.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != _MATCH:
            return self.resource_name == rule.resource_name
        # MATCH means every rule that has a say about the resource of that name.
        if rule.pattern_type == _PREFIXED:
            return self.resource_name.startswith(rule.resource_name)
        return rule.resource_name in (self.resource_name, _WILDCARD)


def decide_create_acls(view: ControllerView, ask: CreateAclsRequest) -> Decision[CreateAclsResponse]:
    """Make rules. One that is there already is not made again, which is no error."""
    known = {_content(rule) for rule in view.image.acls.values()}
    results: list[AclCreationResult] = []
    records: list[Any] = []
    for creation in ask.creations:
        try:
            _check_creation(creation)
            check_record_count(len(records) + 1)
        except Refusal as refusal:
            results.append(AclCreationResult(error_code=refusal.error_code, error_message=refusal.message))
            continue
        results.append(AclCreationResult(error_message=None))
        record = _record(view, creation)
        if _content(record) not in known:
            known.add(_content(record))
            records.append(record)
    return Decision(CreateAclsResponse(results=tuple(results)), records)


def _check_creation(creation: AclCreation) -> None:
    if creation.resource_type not in _RESOURCE_TYPES:
        raise _invalid(f"Invalid resourceType {creation.resource_type}")
    if creation.resource_type == _CLUSTER and creation.resource_name != _CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {_CLUSTER_NAME}")
    if not creation.resource_name:
        raise _invalid("Resource name should not be empty")
    if creation.resource_pattern_type not in (_LITERAL, _PREFIXED):
        raise _invalid(f"Invalid patternType {creation.resource_pattern_type}")
    if creation.operation not in _OPERATIONS:
        raise _invalid(f"Invalid operation {creation.operation}")
    if creation.permission_type not in (_DENY, _ALLOW):
        raise _invalid(f"Invalid permissionType {creation.permission_type}")
    if ":" not in creation.principal:
        raise _invalid(f"The principal '{creation.principal}' has no colon between its type and its name.")


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _content(rule: AccessControlEntryRecord) -> tuple[Any, ...]:
    """Return what a rule says, without its id."""
    return (
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )


def _record(view: ControllerView, creation: AclCreation) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=random_id(view.random),
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def decide_delete_acls(view: ControllerView, ask: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    """Remove all rules that one of the filters means."""
    results: list[DeleteAclsFilterResult] = []
    removed: dict[Any, None] = {}
    for one in ask.filters:
        wanted = _filter_of(one)
        try:
            wanted.check()
            matching = [rule for rule in view.image.acls.values() if wanted.matches(rule)]
            check_record_count(len(removed.keys() | {rule.id for rule in matching}))
        except Refusal as refusal:
            results.append(
                DeleteAclsFilterResult(
                    error_code=refusal.error_code, error_message=refusal.message, matching_acls=()
                )
            )
            continue
        removed.update(dict.fromkeys(rule.id for rule in matching))
        results.append(
            DeleteAclsFilterResult(
                error_message=None, matching_acls=tuple(_matching_acl(rule) for rule in matching)
            )
        )
    records = [RemoveAccessControlEntryRecord(id=rule_id) for rule_id in removed]
    return Decision(DeleteAclsResponse(filter_results=tuple(results)), records)


def _filter_of(one: DeleteAclsFilter | DescribeAclsRequest) -> Filter:
    return Filter(
        one.resource_type_filter,
        one.resource_name_filter,
        one.pattern_type_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )


def _matching_acl(rule: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission_type,
    )


def describe_acls(image: MetadataImage, ask: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the rules that a filter means, by the resources they are about."""
    wanted = _filter_of(ask)
    try:
        wanted.check()
    except Refusal as refusal:
        return DescribeAclsResponse(
            error_code=refusal.error_code, error_message=refusal.message, resources=()
        )
    by_resource: dict[tuple[int, str, int], list[AccessControlEntryRecord]] = {}
    for rule in image.acls.values():
        if wanted.matches(rule):
            key = (rule.resource_type, rule.resource_name, rule.pattern_type)
            by_resource.setdefault(key, []).append(rule)
    resources = tuple(_resource(key, rules) for key, rules in by_resource.items())
    return DescribeAclsResponse(error_message=None, resources=resources)


def _resource(key: tuple[int, str, int], rules: Sequence[AccessControlEntryRecord]) -> DescribeAclsResource:
    resource_type, resource_name, pattern_type = key
    return DescribeAclsResource(
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        acls=tuple(
            AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
            for rule in rules
        ),
    )
