"""What a new directory is formatted with: the options of `kafka-storage format`, understood and checked.

The quorum is dynamic if its first voters are named (`--standalone`, `--initial-controllers`) or will be added
later (`--no-initial-controllers`). It is static if `controller.quorum.voters` names them. What the options do
not say follows from the configuration, where only one answer makes sense.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.directory_ids import is_reserved
from ottla.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    SCRAM_FROM,
    SUPPORTED,
    default_levels,
    find_metadata_version,
    find_unmet_need,
)
from ottla.model.ids import NodeId
from ottla.model.uuid import Uuid
from ottla.quorum.format import NewCluster
from ottla.quorum.random_id import random_id
from ottla.quorum.voters import Endpoint, voter
from ottla.wire.control_records import Voter
from ottla.world.randomness import Randomness

CONTROLLER_LISTENER = "CONTROLLER"
CONTROLLER_PORT = 9093
"""Where the controller is said to listen when no listener of it is configured."""

_INITIAL: Final = re.compile(r"([0-9]+)@(?:\[(.+)\]|([^:\[\]]+)):([0-9]+):(.+)")
_SCRAM: Final = re.compile(r"(SCRAM-SHA-256|SCRAM-SHA-512)=\[(.*)\]")
_SCRAM_PART: Final = re.compile(r'\s*([a-z-]+)=(?:"([^"]*)"|([^,]*))\s*(?:,|$)')
_SCRAM_SECRETS: Final = ("password", "password-file", "saltedpassword")
_SCRAM_KEYS: Final = ("name", "salt", "iterations", *_SCRAM_SECRETS)
_SCRAM_UNKNOWN: Final = f"a key is unknown; known are {', '.join(_SCRAM_KEYS)}"
_MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
_SALT_BYTES: Final = 32


class FormatFailure(Exception):
    """A directory cannot be formatted."""


class FormatOptions(NamedTuple):
    """What the command line says about directories that are not formatted yet."""

    cluster_id: str | None = None
    directory_id: str | None = None
    """The id of the directory for the metadata. None: the one that the voters are given, or a random one."""
    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    release_version: str | None = None
    features: Sequence[str] = ()
    scram_credentials: Sequence[str] = ()

    @property
    def is_dynamic(self) -> bool:
        """Whether an option says that the quorum is a dynamic one."""
        return self.standalone or self.no_initial_controllers or self.initial_controllers is not None


NO_OPTIONS: Final = FormatOptions()


def controller_endpoint(config: NodeConfig) -> Endpoint:
    """Return where this node's controller is reached, or is said to be."""
    endpoints = config.advertised_controller_endpoints
    if endpoints:
        name, host, port, _ = endpoints[0]
        return Endpoint(name, host or "localhost", port)
    return Endpoint(_controller_listener(config), "localhost", CONTROLLER_PORT)


def plan_cluster(config: NodeConfig, options: FormatOptions, chance: Randomness) -> NewCluster:
    """Return what to format a node's directories with. Raises `FormatFailure` if the options do not fit."""
    _check_quorum_options(config, options)
    is_alone = _is_alone(config, options)
    cluster_id = options.cluster_id
    if cluster_id is None:
        if not is_alone:
            raise FormatFailure(
                f"node {config.node_id} is part of a cluster of several nodes: add --cluster-id, the same "
                "for all of them (`ottla storage random-id` prints a new one)"
            )
        cluster_id = str(random_id(chance))
    _check_cluster_id(cluster_id)
    directory_id = _directory_id(options, chance)
    voters = _voters(config, options, directory_id, is_alone=is_alone)
    features = _feature_levels(options, is_dynamic=voters is not None or options.no_initial_controllers)
    records = [parse_scram_credential(text, chance) for text in options.scram_credentials]
    if records and features[METADATA_VERSION] < SCRAM_FROM:
        raise FormatFailure("--add-scram needs metadata.version 3.5-IV2 or later")
    for one in voters or ():
        if one.voter_id == config.node_id:
            if options.directory_id is not None and one.voter_directory_id != directory_id:
                raise FormatFailure(
                    f"--initial-controllers gives node {config.node_id} the directory id "
                    f"{one.voter_directory_id}, but --directory-id is {directory_id}: use one id in both"
                )
            directory_id = one.voter_directory_id
    return NewCluster(cluster_id, NodeId(config.node_id), directory_id, voters, features, records)


def _controller_listener(config: NodeConfig) -> str:
    return config.controller_listeners[0] if config.controller_listeners else CONTROLLER_LISTENER


def _check_quorum_options(config: NodeConfig, options: FormatOptions) -> None:
    chosen = [
        name
        for name, is_chosen in (
            ("--standalone", options.standalone),
            ("--initial-controllers", options.initial_controllers is not None),
            ("--no-initial-controllers", options.no_initial_controllers),
        )
        if is_chosen
    ]
    if len(chosen) > 1:
        raise FormatFailure(f"{' and '.join(chosen)} cannot be used together: choose one")
    if chosen and config.controller_quorum_voters and not options.no_initial_controllers:
        raise FormatFailure(
            f"controller.quorum.voters is set, so {chosen[0]} cannot be used: for a dynamic quorum, remove "
            "it and set controller.quorum.bootstrap.servers instead"
        )
    if options.standalone and not config.is_controller:
        raise FormatFailure("--standalone is for controllers only, but process.roles is broker")


def _is_alone(config: NodeConfig, options: FormatOptions) -> bool:
    """Say whether this node is the only voter of a new quorum.

    Deviation: Kafka demands --standalone and a cluster id.
    """
    if options.standalone:
        return True
    if options.is_dynamic or not config.is_controller:
        return False
    others = [
        voter for voter in config.controller_quorum_voters if not voter.startswith(f"{config.node_id}@")
    ]
    if config.controller_quorum_voters:
        return not others
    bootstrap = config.controller_quorum_bootstrap_servers
    own = [endpoint.port for endpoint in config.controller_endpoints]
    if len(bootstrap) > 1 or any(int(server.rpartition(":")[2]) not in own for server in bootstrap):
        raise FormatFailure(
            "controller.quorum.voters is not set on this controller: add --standalone, --initial-controllers "
            "or --no-initial-controllers"
        )
    return True


def _voters(
    config: NodeConfig, options: FormatOptions, directory_id: Uuid, *, is_alone: bool
) -> tuple[Voter, ...] | None:
    """Return the first voters of a dynamic quorum that this node knows, if it does."""
    if options.initial_controllers is not None:
        return parse_initial_controllers(options.initial_controllers, _controller_listener(config))
    if is_alone and not config.controller_quorum_voters:
        return (voter(config.node_id, directory_id, [controller_endpoint(config)]),)
    return None


def parse_initial_controllers(text: str, listener: str) -> tuple[Voter, ...]:
    """Read `id@host:port:directory-id`, separated by commas."""
    voters: dict[int, Voter] = {}
    for part in text.split(","):
        match = _INITIAL.fullmatch(part.strip())
        if match is None:
            raise FormatFailure(f"--initial-controllers: {part!r} is not ID@HOST:PORT:DIRECTORY_ID")
        node_id, port = int(match[1]), int(match[4])
        if node_id in voters:
            raise FormatFailure(f"--initial-controllers names node {node_id} twice")
        if port > 65535:
            raise FormatFailure(f"--initial-controllers: no port has the number {port}")
        directory_id = _parse_directory_id("--initial-controllers", match[5])
        voters[node_id] = voter(node_id, directory_id, [Endpoint(listener, match[2] or match[3], port)])
    return tuple(voters.values())


def _directory_id(options: FormatOptions, chance: Randomness) -> Uuid:
    if options.directory_id is None:
        return random_id(chance)
    return _parse_directory_id("--directory-id", options.directory_id)


def _parse_directory_id(option: str, text: str) -> Uuid:
    try:
        directory_id = Uuid.from_text(text)
    except ValueError as error:
        raise FormatFailure(f"{option}: {text!r} is not a valid directory id: {error}") from error
    if is_reserved(directory_id):
        raise FormatFailure(f"{option}: the directory id {text} is reserved: choose another")
    return directory_id


def _check_cluster_id(cluster_id: str) -> None:
    """Take any word, as Kafka does, though the ids that are made are those of 16 bytes."""
    if not cluster_id.isprintable() or not cluster_id.strip() or " " in cluster_id:
        raise FormatFailure(f"{cluster_id!r} is not a valid cluster id: it must be one word")


def _feature_levels(options: FormatOptions, *, is_dynamic: bool) -> dict[str, int]:
    """Return the levels that the first controller finalizes: metadata.version first, the others by name."""
    given = dict(_parse_feature(text) for text in options.features)
    if options.release_version is not None:
        if METADATA_VERSION in given:
            raise FormatFailure("--release-version and --feature metadata.version cannot be used together")
        version = find_metadata_version(options.release_version)
        if version is None:
            raise FormatFailure(
                f"--release-version: {options.release_version!r} is not a release from 3.3-IV3 to 4.3"
            )
        given[METADATA_VERSION] = version
    _check_kraft_version(given.pop(KRAFT_VERSION, None), is_dynamic=is_dynamic)
    levels = default_levels(given[METADATA_VERSION]) if METADATA_VERSION in given else default_levels()
    levels |= given
    for name, level in levels.items():
        need = find_unmet_need(name, level, levels)
        if need is not None and name != METADATA_VERSION:
            raise FormatFailure(f"{name}={level} needs {need[0]} {need[1]} or higher")
    first = {METADATA_VERSION: levels.pop(METADATA_VERSION)}
    return first | {name: levels[name] for name in sorted(levels) if levels[name] > 0}


def _check_kraft_version(level: int | None, *, is_dynamic: bool) -> None:
    """The quorum has its own records for it, so it is not among the features that are written."""
    if level is not None and (level > 0) is not is_dynamic:
        how = "a dynamic" if is_dynamic else "a static"
        raise FormatFailure(f"kraft.version cannot be {level} in {how} quorum: leave the --feature out")


def _parse_feature(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    name, level = name.strip(), level.strip()
    if not equals or not level.isdecimal():
        raise FormatFailure(f"--feature: {text!r} is not NAME=LEVEL")
    if name not in SUPPORTED:
        raise FormatFailure(f"--feature: unknown feature {name}; known are {', '.join(sorted(SUPPORTED))}")
    supported = SUPPORTED[name]
    if int(level) not in supported:
        raise FormatFailure(
            f"--feature: {name} {level} is not supported, only {supported.min} to {supported.max}"
        )
    return name, int(level)


def parse_scram_credential(text: str, chance: Randomness) -> Any:
    """Read `SCRAM-SHA-256=[name=alice,password-file=FILE]`, or `password=` and what it is. `iterations`,
    `salt` and `saltedpassword` may be given too.
    """
    # Most nodes are formatted without, and this would import the deciders.
    import hashlib

    from ottla.quorum.controller.scram import ITERATIONS_MAX, ITERATIONS_MIN, scram_record

    match = _SCRAM.fullmatch(text.strip())
    if match is None:
        raise FormatFailure(
            "--add-scram: write SCRAM-SHA-256=[name=USER,password-file=FILE], or SCRAM-SHA-512"
        )
    mechanism, hash_name = _MECHANISMS[match[1]]
    parts = _scram_parts(match[2])
    user = parts.get("name")
    if not user:
        raise FormatFailure("--add-scram: name is missing")
    iterations_text = parts.get("iterations", str(ITERATIONS_MIN))
    if not iterations_text.isdecimal() or not ITERATIONS_MIN <= int(iterations_text) <= ITERATIONS_MAX:
        raise FormatFailure(f"--add-scram: iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    iterations = int(iterations_text)
    if len(parts.keys() & _SCRAM_SECRETS) != 1:
        raise FormatFailure(f"--add-scram: {user} needs one of {', '.join(_SCRAM_SECRETS)}")
    if "saltedpassword" in parts and "salt" not in parts:
        raise FormatFailure(f"--add-scram: saltedpassword of {user} needs its salt")
    salt = _decode_base64("salt", parts["salt"]) if "salt" in parts else chance.randbytes(_SALT_BYTES)
    if "saltedpassword" in parts:
        salted = _decode_base64("saltedpassword", parts["saltedpassword"])
    else:
        password = parts["password"] if "password" in parts else _read_password(parts["password-file"])
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    return scram_record(user, mechanism, salt, salted, iterations)


def _read_password(file: str) -> str:
    try:
        password = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise FormatFailure(f"--add-scram: cannot read {file}: {reason}") from error
    if not password:
        raise FormatFailure(f"--add-scram: {file} has no password in it")
    return password


def shows_secret(scram_option: str) -> bool:
    """Say whether a credential has its password in it, rather than the name of a file."""
    return re.search(r"[\[,]\s*(salted)?password\s*=", scram_option) is not None


def _scram_parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _SCRAM_PART.match(text, position)
        if match is None or match[1] in parts:
            # What cannot be read may be a part of the password.
            raise FormatFailure(
                f"--add-scram: cannot read what comes behind {', '.join(parts) or '['}: write KEY=VALUE, "
                "with commas between, and each key once"
            )
        if match[1] not in _SCRAM_KEYS:
            raise FormatFailure(f"--add-scram: {_SCRAM_UNKNOWN}")
        parts[match[1]] = match[3] if match[2] is None else match[2]
        position = match.end()
    return parts


def _decode_base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise FormatFailure(f"--add-scram: {name} is not base64") from error
