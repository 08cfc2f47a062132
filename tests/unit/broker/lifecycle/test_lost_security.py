"""A node that has lost its configuration does not serve everybody what was made for a few."""

from pathlib import Path

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lifecycle.lost_security import find_lost
from ottla.broker.lifecycle.process import NodeFailure
from ottla.metadata.configs.load import load_node_config
from ottla.security.access_rules import PatternType, Permission
from ottla.security.rights import Operation, ResourceType
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest

RULES = {"authorizer.class.name": CLASS_NAME, "super.users": "User:ANONYMOUS"}
LOGIN = {
    "listeners": "LOGIN://127.0.0.1:0",
    "inter.broker.listener.name": "LOGIN",
    "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
}


def make_rule(root: Path) -> None:
    rule = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name="payments",
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=Operation.READ,
        permission_type=Permission.ALLOW,
    )
    with in_process_node(root, RULES) as node:
        (result,) = InProcessClient(node).ask(CreateAclsRequest(creations=(rule,))).results
        assert result.error_code is ErrorCode.NONE


def make_user(root: Path) -> None:
    user = ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=4096, salt=b"salt", salted_password=b"s" * 64
    )
    with in_process_node(root) as node:
        ask = AlterUserScramCredentialsRequest(deletions=(), upsertions=(user,))
        (result,) = InProcessClient(node).ask(ask).results
        assert result.error_code is ErrorCode.NONE


def start(root: Path, settings: dict[str, str] | None = None, *, is_insecure: bool = False) -> None:
    with in_process_node(root, settings, is_insecure=is_insecure):
        pass


def test_rules_without_an_authorizer_are_refused(tmp_path: Path) -> None:
    make_rule(tmp_path)
    with pytest.raises(NodeFailure, match=r"access rules \(1\).*--clients\), or add --insecure"):
        start(tmp_path)
    assert (tmp_path / "data/.kafka_cleanshutdown").exists(), "a start that is refused changes nothing"
    start(tmp_path, RULES)
    start(tmp_path, is_insecure=True)


def test_users_without_a_login_are_refused(tmp_path: Path) -> None:
    make_user(tmp_path)
    with pytest.raises(NodeFailure, match=r"passwords of users \(1\).*no listener that asks for one"):
        start(tmp_path)
    # An authorizer denies what nobody has proven to be allowed.
    start(tmp_path, RULES)
    start(tmp_path, is_insecure=True)


def test_a_listener_that_asks_for_passwords_is_enough_for_users() -> None:
    configs = load_node_config(b"", LOGIN).configs
    assert find_lost(configs, rules=0, users=1) is None
    assert find_lost(configs, rules=1, users=1) is not None


def test_what_is_open_to_all_may_stay_so() -> None:
    assert find_lost(load_node_config().configs, rules=0, users=0) is None
