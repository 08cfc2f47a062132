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
"""

import os
import secrets
import stat
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from socket import gethostname
from typing import Any, Final, NamedTuple

from ottla.cli.failure import Failure

USER: Final = "admin"
MECHANISM: Final = "SCRAM-SHA-512"
_PASSWORD_FILE: Final = "admin.password"  # noqa: S105 - the name of a file
_VALID_DAYS: Final = 3650
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - what is not a name for a certificate


class SecureFiles(NamedTuple):
    """What a secure node is started with."""

    directory: Path
    password: str
    is_new: bool

    def settings(self) -> dict[str, str]:
        """Return the configs of the node."""
        login = f'username="{USER}" password="{self.password}"'
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return {
            "listeners": "SASL_SSL://127.0.0.1:9092",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": f"SCRAM-SHA-256,{MECHANISM}",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": f"{module} required {login};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER}",
            "auto.create.topics.enable": "false",
        }

    @property
    def scram_option(self) -> str:
        """The credential of the admin, in the form of `--add-scram`."""
        return f"{MECHANISM}=[name={USER},password={self.password}]"

    def write_client_files(self, bootstrap: str) -> None:
        """Write what clients need, now that the address is known."""
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
        _write(self.directory / "java.properties", _lines(java))
        _write(self.directory / "librdkafka.conf", _lines(plain))
        spark = {f"kafka.{key}": text for key, text in java.items()}
        _write(self.directory / "spark.properties", _lines(spark))
        profile = "".join(f'"{key}" = "{text}"\n' for key, text in plain.items())
        _write(self.directory / "ottla.toml", f"[profiles.default]\n{profile}")


def _lines(properties: dict[str, str]) -> str:
    return "".join(f"{key}={text}\n" for key, text in properties.items())


def prepare(directory: Path, host: str | None, is_formatted: bool) -> SecureFiles:
    """Return what a secure node is started with, made now if it is the first start."""
    directory = directory.absolute()
    password_file = directory / _PASSWORD_FILE
    if password_file.exists():
        _check_private(directory, (password_file, directory / "node.pem"))
        return SecureFiles(directory, password_file.read_text().strip(), is_new=False)
    if is_formatted:
        raise Failure(
            f"the data directory is in use already, and {directory} has no password for it: name the "
            "directory of its first start with --clients, or start with an empty data directory"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        _make_certificates(directory, host)
        password = secrets.token_urlsafe(24)
        _write(password_file, password + "\n")
    except OSError as error:
        raise Failure(f"cannot write to {directory}: {error.strerror}") from error
    return SecureFiles(directory, password, is_new=True)


def _check_private(directory: Path, files: Iterable[Path]) -> None:
    """Refuse secrets that other users of this machine can read."""
    for path in (directory, *files):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror}") from error
        if mode & 0o077:
            allowed = "700" if path == directory else "600"
            raise Failure(
                f"other users can read {path}, which holds secrets: run `chmod {allowed} {path}`, and "
                "replace them if somebody may have"
            )


def _write(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read, from the first byte on."""
    data = content.encode() if isinstance(content, str) else content
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    new.replace(path)


def _make_certificates(directory: Path, host: str | None) -> None:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError as error:
        raise Failure("--secure makes certificates: install `ottla[security]`") from error

    def name(common: str) -> Any:
        parts = ((NameOID.ORGANIZATION_NAME, "Ottla"), (NameOID.COMMON_NAME, common))
        return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])

    def builder(subject: Any, issuer: Any, key: Any) -> Any:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=_VALID_DAYS))
        )

    def pem(key: Any) -> bytes:
        written: bytes = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return written

    ca_key, node_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = name("Ottla certificate authority")
    ca = (
        builder(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    names = [_general_name(x509, text) for text in _names_of_node(host)]
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    node = (
        builder(name("node"), ca_name, node_key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    ca_pem = ca.public_bytes(serialization.Encoding.PEM)
    _write(directory / "ca.key", pem(ca_key))
    _write(directory / "ca.pem", ca_pem)
    _write(directory / "node.pem", pem(node_key) + node.public_bytes(serialization.Encoding.PEM) + ca_pem)


def _names_of_node(host: str | None) -> list[str]:
    """Return what clients may call the node."""
    names = ["localhost", "127.0.0.1", "::1", gethostname()]
    if host is not None and host not in _EVERY_ADDRESS:
        names.append(host)
    return list(dict.fromkeys(names))


def _general_name(x509: Any, text: str) -> Any:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


HINTS: Final = """
The node asks for a login, over TLS. The settings of the user `admin` are in {directory}, which only you can
read. Try:

  export OTTLA_CONFIG={directory}/ottla.toml
  ottla topic create greetings
  kafka-topics.sh --bootstrap-server {address} --command-config {directory}/java.properties --list
  kcat -F {directory}/librdkafka.conf -L

Add users with `ottla user set NAME`, and allow them what they need with `ottla acl add`."""
