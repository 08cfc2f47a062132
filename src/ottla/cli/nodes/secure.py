"""`ottla up --secure`: a node that nobody can use without a password, from one command.

The first start makes a certificate authority, a certificate for the node, and a user `admin` with a random
password. They are kept in the directory of `--clients`, with files that clients read their settings from.
Later starts use what is there. Nothing of it is printed, and no other user of the machine can read it.

    ca.pem             whom clients trust
    ca.key             the key of the authority, to make certificates for other nodes
    node.pem           the node's key and certificate
    java.properties    for Java clients and Kafka's tools (--command-config)
    librdkafka.conf    for librdkafka and its bindings (kcat -F)
    ottla.toml         a profile for `ottla` (OTTLA_CONFIG)
    spark.properties   options of Spark's Kafka source and sink

Other nodes join by a token (`ottla cluster token`), which has a certificate for them. Nodes know each other
by these certificates, on listeners of their own. Only the first node has the password of the admin and the
key of the authority.
"""

import json
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.failure import Failure
from ottla.cli.nodes.certificates import NODE, make_authority, make_node
from ottla.cli.nodes.join_token import JoinToken, read_token
from ottla.model.properties import encode_settings
from ottla.runtime.private_files import make_private_directory, write_private

if TYPE_CHECKING:
    from ottla.broker.lifecycle.format_options import FormatOptions

USER: Final = "admin"
MECHANISM: Final = "SCRAM-SHA-512"
_PASSWORD_FILE: Final = "admin.password"  # noqa: S105 - the name of a file
DEFAULT_PORT: Final = 9092
NODE_PORTS_AFTER: Final = 1000
"""How far the port for other nodes is from that for clients, and the port of the controller from that."""
_PORT_HIGH: Final = 60_000
NODE_FILE: Final = "node.pem"
EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - what is no name for a certificate
TOKEN_FILE: Final = "join.token"  # noqa: S105 - the name of a file


class SecureFiles(NamedTuple):
    """What a secure node is started with."""

    directory: Path
    password: str
    is_new: bool
    token: JoinToken | None = None
    """By which the node has joined a cluster. The first node of a cluster has none, and has the password."""

    def settings(
        self, host: str | None, port: int | None, *, is_controller: bool | None = None
    ) -> dict[str, str]:
        """Return the configs of the node, with the address of the command line.

        `is_controller` says whether it has the listener of one. Otherwise the token does, if there is one.
        """
        if is_controller is None:
            is_controller = self.token is None or self.token.is_controller
        settings = {
            "process.roles": "broker,controller",
            **_listeners(
                "127.0.0.1" if host is None else host,
                DEFAULT_PORT if port is None else port,
                is_controller=is_controller,
            ),
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,NODES:SSL,CONTROLLER:SSL",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "NODES",
            "listener.name.nodes.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": f"SCRAM-SHA-256,{MECHANISM}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / NODE_FILE),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER};User:{NODE}",
            "auto.create.topics.enable": "false",
            "ottla.key.files.check": "refuse",
        }
        return settings if self.token is None else settings | self.token.settings()

    def format_options(self, chosen: "FormatOptions") -> "FormatOptions":
        """Add to the options for an empty data directory what a secure node needs."""
        if self.token is not None:
            return chosen._replace(
                cluster_id=self.token.cluster_id, no_initial_controllers=self.token.is_controller
            )
        return chosen._replace(scram_credentials=(*chosen.scram_credentials, self.scram_option))

    @property
    def scram_option(self) -> str:
        """The credential of the admin, in the form of `--add-scram`."""
        return f"{MECHANISM}=[name={USER},password={self.password}]"

    def write_client_files(self, bootstrap: str) -> None:
        """Write what clients need, now that the address is known. A node that joined has no password."""
        if self.token is not None:
            return
        bootstrap = ",".join(map(_address_for_clients, bootstrap.split(",")))
        ca = self.directory / "ca.pem"
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'{module} required username="{USER}" password="{self.password}";'
        java = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
        }
        plain = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": USER,
            "sasl.password": self.password,
            "ssl.ca.location": str(ca),
        }
        write_private(self.directory / "java.properties", encode_settings(java))
        write_private(self.directory / "librdkafka.conf", _lines(plain))
        spark = {f"kafka.{key}": text for key, text in java.items()}
        write_private(self.directory / "spark.properties", encode_settings(spark))
        # What JSON writes as a string is one of TOML as well.
        profile = "".join(f"{json.dumps(key)} = {json.dumps(text)}\n" for key, text in plain.items())
        write_private(self.directory / "ottla.toml", f"[profiles.default]\n{profile}")


def _address_for_clients(address: str) -> str:
    host, _, port = address.rpartition(":")
    # The certificate is not for every address, and other machines could not connect to that.
    return f"{gethostname()}:{port}" if host.strip("[]") in EVERY_ADDRESS else address


def controller_port(port: int) -> int:
    """Return the port of the controller of a node whose clients connect to `port`."""
    return port + 2 * _step(port)


def _step(port: int) -> int:
    return NODE_PORTS_AFTER if port < _PORT_HIGH else -NODE_PORTS_AFTER


def _lines(properties: dict[str, str]) -> str:
    """Return settings as librdkafka's tools read them: they know no escapes."""
    return "".join(f"{key}={text}\n" for key, text in properties.items())


def _listeners(host: str, port: int, *, is_controller: bool) -> dict[str, str]:
    """Return the configs about the listener of clients, and about those of nodes at ports further up."""
    ports = {"SASL_SSL": port, "NODES": port + _step(port)}
    if is_controller:
        ports["CONTROLLER"] = controller_port(port)

    def addresses(name: str) -> str:
        shown = f"[{name}]" if ":" in name else name
        return ",".join(
            f"{listener}://{shown}:{0 if port == 0 else chosen}" for listener, chosen in ports.items()
        )

    settings = {"listeners": addresses(host)}
    if host in EVERY_ADDRESS:
        settings["advertised.listeners"] = addresses(gethostname())
    return settings


def prepare(directory: Path, host: str | None, is_formatted: bool, join: Path | None = None) -> SecureFiles:
    """Return what a secure node is started with, made now if it is the first start."""
    directory = directory.absolute()
    password_file, token_file = directory / _PASSWORD_FILE, directory / TOKEN_FILE
    if token_file.exists():
        _check_private(directory, (token_file, directory / NODE_FILE))
        return SecureFiles(directory, "", is_new=False, token=read_token(token_file))
    if password_file.exists():
        if join is not None:
            raise Failure(
                f"{directory} belongs to the first node of a cluster: name another directory with --clients"
            )
        _check_private(directory, (password_file, directory / NODE_FILE))
        return SecureFiles(directory, password_file.read_text().strip(), is_new=False)
    if is_formatted:
        raise Failure(
            f"the data directory is in use already, and {directory} has no password for it: name the "
            "directory of its first start with --clients, or start with an empty data directory"
        )
    try:
        make_private_directory(directory)
        directory.chmod(0o700)
        return _begin(directory, host) if join is None else _begin_joined(directory, join)
    except OSError as error:
        raise Failure(f"cannot write to {directory}: {error.strerror}") from error


def _begin(directory: Path, host: str | None) -> SecureFiles:
    authority = make_authority()
    write_private(directory / "ca.key", authority.key)
    write_private(directory / "ca.pem", authority.certificate)
    own = () if host is None or host in EVERY_ADDRESS else (host,)
    write_private(directory / NODE_FILE, make_node(authority, (gethostname(), *own)))
    password = secrets.token_urlsafe(24)
    write_private(directory / _PASSWORD_FILE, password + "\n")
    return SecureFiles(directory, password, is_new=True)


def _begin_joined(directory: Path, join: Path) -> SecureFiles:
    _check_private(join, ())
    token = read_token(join)
    write_private(directory / "ca.pem", token.ca)
    write_private(directory / NODE_FILE, token.node)
    write_private(directory / TOKEN_FILE, token.text())
    return SecureFiles(directory, "", is_new=False, token=token)


def _check_private(directory: Path, files: Iterable[Path]) -> None:
    """Refuse secrets that other users of this machine can read."""
    for path in (directory, *files):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror}") from error
        if mode & 0o077:
            allowed = "700" if path.is_dir() else "600"
            raise Failure(
                f"other users can read {path}, which holds secrets: run `chmod {allowed} {path}`, and "
                "replace them if somebody may have"
            )


HINTS: Final = """
The node asks for a login, over TLS. The settings of the user `admin` are in {directory}, which only you can
read. Try:

  export OTTLA_CONFIG={directory}/ottla.toml
  ottla topic create greetings
  kafka-topics.sh --bootstrap-server {address} --command-config {directory}/java.properties --list
  kcat -F {directory}/librdkafka.conf -L

Add users with `ottla user set NAME`, and allow them what they need with `ottla acl add`. Another node joins
by a token that `ottla cluster token` makes."""
