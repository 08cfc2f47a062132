"""Access rules."""

from typing import Any

import pytest
from tests.deciding import DecidingController

from ottla.quorum.controller.acls import decide_create_acls, decide_delete_acls, describe_acls
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest

TOPIC, CLUSTER = 2, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, WRITE = 3, 4
ALLOW = 3


def rule(name: str = "orders", **changes: Any) -> AclCreation:
    fields: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**{**fields, **changes})


def create(controller: DecidingController, *rules: AclCreation) -> list[ErrorCode]:
    reply = controller.ask(decide_create_acls, CreateAclsRequest(creations=rules))
    return [result.error_code for result in reply.results]


def wanted(**changes: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **changes,
    }


def described(controller: DecidingController, **changes: Any) -> set[str]:
    answer = describe_acls(controller.image, DescribeAclsRequest(**wanted(**changes)))
    assert answer.error_code is ErrorCode.NONE
    return {resource.resource_name for resource in answer.resources for _ in resource.acls}


def test_a_rule_that_exists_is_not_made_again() -> None:
    controller = DecidingController()
    assert create(controller, rule(), rule(), rule(operation=WRITE)) == [ErrorCode.NONE] * 3
    assert len(controller.image.acls) == 2
    assert create(controller, rule()) == [ErrorCode.NONE]
    assert not controller.records


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": ANY},
        {"resource_type": 99},
        {"resource_name": ""},
        {"resource_pattern_type": MATCH},
        {"operation": ANY},
        {"operation": 99},
        {"permission_type": ANY},
        {"principal": "alice"},
        {"resource_type": CLUSTER, "resource_name": "my-cluster"},
    ],
    ids=str,
)
def test_a_rule_that_means_nothing_is_refused(changes: dict[str, Any]) -> None:
    controller = DecidingController()
    bad = rule(**{"name": "orders", **{k: v for k, v in changes.items() if k != "resource_name"}})
    if "resource_name" in changes:
        bad = rule(changes["resource_name"], **{k: v for k, v in changes.items() if k != "resource_name"})
    assert create(controller, bad, rule()) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert len(controller.image.acls) == 1


def test_rules_are_found_by_what_they_say() -> None:
    controller = DecidingController()
    create(
        controller,
        rule("orders"),
        rule("ord", resource_pattern_type=PREFIXED),
        rule("*"),
        rule("bills", principal="User:bob", operation=WRITE),
    )
    assert described(controller) == {"orders", "ord", "*", "bills"}
    assert described(controller, resource_name_filter="orders") == {"orders"}
    assert described(controller, pattern_type_filter=PREFIXED) == {"ord"}
    assert described(controller, principal_filter="User:bob") == {"bills"}
    assert described(controller, operation=WRITE) == {"bills"}
    assert described(controller, resource_type_filter=CLUSTER) == set()


def test_match_finds_every_rule_that_has_a_say() -> None:
    controller = DecidingController()
    create(controller, rule("orders"), rule("ord", resource_pattern_type=PREFIXED), rule("*"), rule("other"))
    found = described(controller, resource_name_filter="orders", pattern_type_filter=MATCH)
    assert found == {"orders", "ord", "*"}


def test_rules_that_a_filter_means_are_removed_once() -> None:
    controller = DecidingController()
    create(controller, rule("a"), rule("b"), rule("c", principal="User:bob"))
    everything = DeleteAclsFilter(**wanted(principal_filter="User:alice"))
    one = DeleteAclsFilter(**wanted(resource_name_filter="a"))
    reply = controller.ask(decide_delete_acls, DeleteAclsRequest(filters=(everything, one)))
    assert [len(result.matching_acls) for result in reply.filter_results] == [2, 1]
    assert len(controller.records) == 2, "a rule that two filters mean is removed once"
    assert described(controller) == {"c"}


def test_a_filter_with_unknown_numbers_is_refused() -> None:
    controller = DecidingController()
    create(controller, rule())
    bad = DeleteAclsFilter(**wanted(operation=99))
    reply = controller.ask(decide_delete_acls, DeleteAclsRequest(filters=(bad,)))
    assert reply.filter_results[0].error_code is ErrorCode.INVALID_REQUEST
    answer = describe_acls(controller.image, DescribeAclsRequest(**wanted(permission_type=0)))
    assert answer.error_code is ErrorCode.INVALID_REQUEST
    assert len(controller.image.acls) == 1
