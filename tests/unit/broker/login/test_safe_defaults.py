"""A check list: what has to be safe if nobody says anything, one line for each.

Everybody who changes one of these makes new nodes less safe, and has to say so here.
"""

import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.authorization.audit import LINES_PER_SECOND_MAX
from ottla.broker.login.bound_listeners import ListenerRefused, check_endpoints
from ottla.broker.login.jwt import ALGORITHMS
from ottla.broker.login.login_session import LOGIN_MS_MAX
from ottla.broker.login.mechanisms import MechanismRefused, make_mechanisms
from ottla.broker.login.tls_listeners import TlsListeners
from ottla.broker.serving.handlers import declared_of
from ottla.broker.serving.served_apis import SERVED
from ottla.cli.failure import Failure
from ottla.cli.nodes.certificates import make_authority, make_node
from ottla.cli.nodes.join_token import JoinToken
from ottla.cli.nodes.secure import SecureFiles, prepare
from ottla.client.admin.settings import AdminSettings
from ottla.client.security import tls_context
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.values import Password
from ottla.runtime.connections.listener import ConnectionLimits
from ottla.runtime.connections.tls import HANDSHAKE_MS_MAX
from ottla.runtime.connections.tls_contexts import (
    KeyStore,
    TlsRefused,
    TlsSettings,
    client_context,
    server_context,
)
from ottla.runtime.disk import RealDisk
from ottla.runtime.log_lines import set_up_audit
from ottla.security.access_rules import AccessRule, PatternType, Permission, ResourcePattern
from ottla.security.jaas import InvalidJaas, parse_jaas
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.rights import Operation, ResourceType, on_topic
from ottla.security.sasl.disguise import disguise
from ottla.security.sasl.mechanism import LoginFailed
from ottla.security.sasl.plain import PlainConversation
from ottla.security.sasl.scram import ScramConversation
from ottla.security.standard_authorizer import StandardAuthorizer
from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.sasl.bearer_tokens import TokenSource
from ottla.wire.sasl.login import ITERATIONS_MAX, ITERATIONS_MIN

DEFAULTS = load_node_config(b"", {}).configs
CONFIG = DEFAULTS.node
SECRET = "a-secret-that-nobody-sees"
CHECKS_MIN = 40


class Scene(NamedTuple):
    """What checks may use."""

    root: Path
    certificate: Path

    def tls(self, *, client_auth: str = "none", **settings: Any) -> ssl.SSLContext:
        keystore = KeyStore("PEM", str(self.certificate), None)
        return server_context(TlsSettings(keystore, KeyStore("PEM", None, None), client_auth, **settings))


CHECKS: dict[str, Callable[[Scene], None]] = {}


def safe(sentence: str) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    def register(check: Callable[[Scene], None]) -> Callable[[Scene], None]:
        assert sentence not in CHECKS
        CHECKS[sentence] = check
        return check

    return register


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("scene")
    certificate = root / "node.pem"
    certificate.write_bytes(trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.bytes())
    return Scene(root, certificate)


def configs(protocol: str, host: str = "127.0.0.1", **settings: str) -> EffectiveConfigs:
    """Return the configs of a node with one listener."""
    given = {
        "listeners": f"{protocol}://{host}:9092",
        "advertised.listeners": f"{protocol}://example.org:9092",
        "inter.broker.listener.name": protocol,
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    return load_node_config(b"", given).configs


def refuses_listener(protocol: str, host: str, **settings: str) -> None:
    made = configs(protocol, host, **settings)
    with pytest.raises(ListenerRefused, match="--insecure"):
        check_endpoints(made.node.listener_endpoints, made, is_insecure=False)


def refuses_mechanism(mechanism: str) -> None:
    made = configs("SASL_PLAINTEXT", sasl_enabled_mechanisms=mechanism)
    with pytest.raises(MechanismRefused, match=mechanism):
        make_mechanisms(ListenerConfig(made, "SASL_PLAINTEXT"), None)  # type: ignore[arg-type]


# Listeners


@safe("a node listens on loopback only")
def _(_scene: Scene) -> None:
    assert {endpoint.host for endpoint in CONFIG.listener_endpoints} <= {"127.0.0.1", "localhost"}
    check_endpoints(CONFIG.listener_endpoints, DEFAULTS, is_insecure=False)


@safe("a plaintext listener beyond loopback is refused")
def _(_scene: Scene) -> None:
    refuses_listener("PLAINTEXT", "10.0.0.1")


@safe("a listener on all addresses is beyond loopback")
def _(_scene: Scene) -> None:
    for host in ("", "0.0.0.0", "[::]"):
        refuses_listener("PLAINTEXT", host)


@safe("the name of a host is not taken for loopback")
def _(_scene: Scene) -> None:
    refuses_listener("PLAINTEXT", "example.org")


@safe("encryption alone is no login")
def _(_scene: Scene) -> None:
    refuses_listener("SSL", "10.0.0.1")


@safe("a certificate that may be left out is no login")
def _(_scene: Scene) -> None:
    refuses_listener("SSL", "10.0.0.1", ssl_client_auth="requested")


@safe("satellites listen on loopback only")
def _(_scene: Scene) -> None:
    from ottla.cli.main import main

    registry = main.get_command(None, "registry")  # type: ignore[arg-type]
    assert registry is not None
    [host] = [option for option in registry.params if option.name == "host"]
    assert host.default == "127.0.0.1"


@safe("the port for metrics is closed")
def _(_scene: Scene) -> None:
    assert CONFIG.ottla_metrics_port == -1


# Rights


@safe("an authorizer denies what no rule allows")
def _(_scene: Scene) -> None:
    assert CONFIG.allow_everyone_if_no_acl_found is False
    assert not StandardAuthorizer().allows(ANONYMOUS, "127.0.0.1", on_topic(Operation.DESCRIBE), "t")


@safe("there are no super users")
def _(_scene: Scene) -> None:
    assert CONFIG.super_users == ""


@safe("to deny wins over to allow")
def _(_scene: Scene) -> None:
    resource = ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL)
    rules = [
        AccessRule(resource, "User:alice", "*", Operation.READ, permission)
        for permission in (Permission.ALLOW, Permission.DENY)
    ]
    authorizer = StandardAuthorizer()
    authorizer.change(enumerate(rules))
    assert not authorizer.allows(Principal("User", "alice"), "h", on_topic(Operation.READ), "t")


@safe("an unknown authorizer is refused, not ignored")
def _(_scene: Scene) -> None:
    from ottla.broker.lifecycle.refused_configs import ConfigRefused, check_configs

    made = load_node_config(b"", {"authorizer.class.name": "com.example.Mine"}).configs
    with pytest.raises(ConfigRefused, match=r"com\.example\.Mine"):
        check_configs(made.node)


@safe("only three APIs come before the login")
def _(_scene: Scene) -> None:
    early = {key for key, served in SERVED.items() if served.is_for_login}
    assert early == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@safe("APIs without a right are few")
def _(_scene: Scene) -> None:
    free = {key for key in SERVED if not declared_of(key).rights}
    assert free <= {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }


@safe("the topics of coordinators are closed to clients")
def _(_scene: Scene) -> None:
    assert CONFIG.ottla_internal_topics_writable is False


# Encryption


@safe("TLS is 1.2 or newer")
def _(scene: Scene) -> None:
    assert CONFIG.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert scene.tls().minimum_version is ssl.TLSVersion.TLSv1_2


@safe("an older TLS is refused")
def _(scene: Scene) -> None:
    for protocol in ("TLSv1", "TLSv1.1", "SSLv3"):
        with pytest.raises(TlsRefused, match=protocol):
            scene.tls(protocols=(protocol,))


@safe("all ciphers are authenticated and have forward secrecy")
def _(scene: Scene) -> None:
    for cipher in scene.tls().get_ciphers():
        assert cipher["aead"], cipher["name"]
        assert cipher["name"].startswith(("TLS_", "ECDHE-")), cipher["name"]


@safe("there is no renegotiation")
def _(scene: Scene) -> None:
    assert scene.tls().options & ssl.OP_NO_RENEGOTIATION


@safe("there is no compression below TLS")
def _(scene: Scene) -> None:
    assert scene.tls().options & ssl.OP_NO_COMPRESSION


@safe("client certificates are never checked against public authorities")
def _(scene: Scene) -> None:
    assert scene.tls().cert_store_stats()["x509"] == 0
    with pytest.raises(TlsRefused, match=r"ssl\.truststore\.location"):
        scene.tls(client_auth="required")


@safe("a TLS listener without a key is refused")
def _(_scene: Scene) -> None:
    with pytest.raises(TlsRefused, match=r"ssl\.keystore\.location"):
        server_context(TlsSettings(KeyStore("PEM", None, None), KeyStore("PEM", None, None)))


@safe("a private key that all users can change is refused, and one that they can read on demand")
def _(scene: Scene) -> None:
    path = scene.root / "shared.pem"
    path.write_bytes(scene.certificate.read_bytes())
    settings = {
        "listeners": "SSL://127.0.0.1:9092",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
    }
    usual = load_node_config(b"", settings).configs
    strict = load_node_config(b"", {**settings, "ottla.key.files.check": "refuse"}).configs
    endpoints = usual.node.listener_endpoints
    for mode, is_refused, is_strictly_refused in (
        (0o600, False, False),
        (0o640, False, True),
        (0o644, False, True),
        (0o664, False, True),
        (0o646, True, True),
    ):
        path.chmod(mode)
        for configs, refuses in ((usual, is_refused), (strict, is_strictly_refused)):
            if refuses:
                with pytest.raises(TlsRefused, match=r"listener SSL: .*shared.pem.*chmod 600"):
                    TlsListeners(configs, endpoints)
            else:
                assert TlsListeners(configs, endpoints)


@safe("ottla up --secure: files of keys are refused if others can read them")
def _(scene: Scene) -> None:
    assert secure_files(scene).settings(None, None)["ottla.key.files.check"] == "refuse"


@safe("a keystore that cannot be read is refused, not ignored")
def _(scene: Scene) -> None:
    path = scene.root / "store.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed" + bytes(100))
    with pytest.raises(TlsRefused, match="JKS"):
        server_context(TlsSettings(KeyStore("JKS", str(path), None), KeyStore("PEM", None, None)))


@safe("nodes check the host names of each other")
def _(scene: Scene) -> None:
    assert CONFIG.ssl_endpoint_identification_algorithm == "https"
    store = KeyStore("PEM", str(scene.certificate), None)
    context = client_context(TlsSettings(store, KeyStore("PEM", None, None)), checks_host_name=True)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


@safe("clients check certificates and host names")
def _(_scene: Scene) -> None:
    context = tls_context(AdminSettings.of(bootstrap_servers="127.0.0.1:1", security_protocol="SSL"))
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


# Logins


@safe("the default mechanism lets nobody in by accident")
def _(_scene: Scene) -> None:
    made = configs("SASL_PLAINTEXT")
    with pytest.raises(MechanismRefused, match="GSSAPI"):
        make_mechanisms(ListenerConfig(made, "SASL_PLAINTEXT"), None)  # type: ignore[arg-type]


@safe("mechanisms that are not known are refused")
def _(_scene: Scene) -> None:
    refuses_mechanism("CRAM-MD5")


@safe("the mechanism ANONYMOUS is refused")
def _(_scene: Scene) -> None:
    refuses_mechanism("ANONYMOUS")


@safe("tokens that nobody can check are refused")
def _(_scene: Scene) -> None:
    refuses_mechanism("OAUTHBEARER")


@safe("signed tokens are checked with public keys only")
def _(_scene: Scene) -> None:
    assert not [name for name in ALGORITHMS if name.startswith("HS") or name.lower() == "none"]


@safe("there is no default password or key")
def _(_scene: Scene) -> None:
    for name, key in NodeConfig.keys.items():
        if isinstance(key.default, Password) or "password" in name or name.endswith("secret.key"):
            assert key.default is None, name


@safe("delegation tokens are off without a key of the cluster")
def _(_scene: Scene) -> None:
    assert CONFIG.delegation_token_secret_key is None


@safe("SCRAM is neither too cheap nor too dear")
def _(_scene: Scene) -> None:
    from ottla.quorum.controller import scram

    assert scram.ITERATIONS_MIN >= ITERATIONS_MIN >= 4096
    assert ITERATIONS_MAX <= 1_000_000


@safe("PLAIN without users lets nobody in")
def _(_scene: Scene) -> None:
    for token in (b"\0alice\0secret", b"\0\0", b"\0alice\0", b"\0\0secret"):
        with pytest.raises(LoginFailed):
            PlainConversation({}).receive(token)


@safe("PLAIN says the same of a wrong user and of a wrong password")
def _(_scene: Scene) -> None:
    said = set()
    for token in (b"\0alice\0wrong", b"\0nobody\0wrong"):
        with pytest.raises(LoginFailed) as caught:
            PlainConversation({"alice": "right"}).receive(token)
        said.add(caught.value.message)
    assert len(said) == 1


@safe("SCRAM gives a user that does not exist a challenge, always the same")
def _(_scene: Scene) -> None:
    salts = set()
    for nonce in ("one", "two"):
        conversation = ScramConversation(
            "SCRAM-SHA-512", lambda *_: None, nonce, lambda user, _: disguise(user, (), b"key")
        )
        challenge = conversation.receive(b"n,,n=nobody,r=abc").token.decode()
        salts.add(challenge.partition(",s=")[2])
    assert len(salts) == 1


@safe("a failed login is answered late")
def _(_scene: Scene) -> None:
    assert CONFIG.connection_failed_authentication_delay_ms >= 100


@safe("a handshake or a login that stalls is ended")
def _(_scene: Scene) -> None:
    assert 0 < HANDSHAKE_MS_MAX <= 30_000
    assert 0 < LOGIN_MS_MAX <= 60_000


@safe("what comes before the login is small")
def _(_scene: Scene) -> None:
    assert 0 < CONFIG.sasl_server_max_receive_size <= 524_288


@safe("connections can hold only so much memory, and only so long")
def _(_scene: Scene) -> None:
    assert ConnectionLimits().frame_ms_max <= 60_000
    assert ConnectionLimits().held_bytes_max <= 1 << 30


# Secrets


@safe("secrets are not shown by DescribeConfigs")
def _(scene: Scene) -> None:
    settings = {
        "delegation.token.secret.key": SECRET,
        "ssl.key.password": SECRET,
        "listener.name.x.plain.sasl.jaas.config": f'a.B required user_x="{SECRET}";',
    }
    with in_process_node(scene.root / "node", settings) as node:
        resource = DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
        answer = InProcessClient(node).ask(DescribeConfigsRequest(resources=(resource,)))
        assert answer.results[0].configs
        assert SECRET not in repr(answer)


@safe("secrets are not shown by what is printed for debugging")
def _(_scene: Scene) -> None:
    settings = AdminSettings.of(
        bootstrap_servers="127.0.0.1:1",
        sasl_password=SECRET,
        sasl_oauthbearer_client_credentials_client_secret=SECRET,
    )
    token = JoinToken("cluster", 1, [], False, "", SECRET)
    shown = (settings, Password(SECRET), TokenSource("https://x", "id", SECRET), token)
    assert SECRET not in repr(shown)
    assert SECRET not in str(Password(SECRET))


@safe("an error about login options does not quote them")
def _(_scene: Scene) -> None:
    with pytest.raises(InvalidJaas) as caught:
        parse_jaas(f'a.B required user_x="{SECRET}')
    assert SECRET not in str(caught.value)


@safe("new files and directories are for their owner only")
def _(scene: Scene) -> None:
    disk = RealDisk()
    disk.make_directory(str(scene.root / "data" / "t-0"))
    file = disk.open(str(scene.root / "data" / "t-0" / "00.log"), create=True)
    file.write(0, [b"x"])
    file.close()
    for path in (scene.root / "data", scene.root / "data" / "t-0", scene.root / "data" / "t-0" / "00.log"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@safe("the audit file is for its owner only, and the lines of a principal are bounded")
def _(scene: Scene) -> None:
    path = scene.root / "audit.jsonl"
    set_up_audit("ottla.test-audit", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert LINES_PER_SECOND_MAX <= 1000


# ottla up --secure


def secure_files(scene: Scene) -> SecureFiles:
    return prepare(scene.root / "clients", "127.0.0.1", is_formatted=False)


@safe("ottla up --secure: secrets are for their owner only")
def _(scene: Scene) -> None:
    directory = secure_files(scene).directory
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for path in directory.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@safe("ottla up --secure: the password is long and random")
def _(scene: Scene) -> None:
    other = prepare(scene.root / "others", "127.0.0.1", is_formatted=False)
    assert len({secure_files(scene).password, other.password}) == 2
    assert len(other.password) >= 32


@safe("ottla up --secure: secrets that others can read are refused")
def _(scene: Scene) -> None:
    directory = prepare(scene.root / "open", "127.0.0.1", is_formatted=False).directory
    (directory / "admin.password").chmod(0o640)
    with pytest.raises(Failure, match="chmod 600"):
        prepare(directory, "127.0.0.1", is_formatted=True)


@safe("ottla up --secure: every listener asks for a login")
def _(scene: Scene) -> None:
    made = load_node_config(b"", secure_files(scene).settings("0.0.0.0", 9092)).configs
    assert len(made.node.listener_endpoints) == 3
    check_endpoints(made.node.listener_endpoints, made, is_insecure=False)


@safe("ottla up --secure: nobody makes topics by asking for them")
def _(scene: Scene) -> None:
    assert secure_files(scene).settings(None, None)["auto.create.topics.enable"] == "false"


@safe("ottla up --secure: a token for another node does not have the key of the authority")
def _(_scene: Scene) -> None:
    authority = make_authority()
    node = make_node(authority, ["example.org"])
    assert authority.certificate in node
    assert authority.key not in node


@pytest.mark.parametrize("sentence", CHECKS)
def test_the_default_is_safe(scene: Scene, sentence: str) -> None:
    CHECKS[sentence](scene)


def test_the_list_is_complete() -> None:
    assert len(CHECKS) >= CHECKS_MIN


def test_a_listener_with_a_login_may_be_anywhere() -> None:
    made = configs("SASL_SSL", "0.0.0.0")
    check_endpoints(made.node.listener_endpoints, made, is_insecure=False)
