"""How commands learn which cluster to speak to, and how: options, environment, profiles.

    [profiles.default]
    "bootstrap.servers" = "127.0.0.1:9092"

    [profiles.production]
    "bootstrap.servers" = "kafka-1:9093,kafka-2:9093"
    "security.protocol" = "SASL_SSL"

A line `use = "production"` before them names the one that is used if no other is named: `ottla profile use`.

The file is `config.toml` in the user's directory for configuration (~/.config/ottla on Linux), or what
OTTLA_CONFIG names. What is nearer wins: `--property` and `--bootstrap`, then the environment
(OTTLA_BOOTSTRAP, and OTTLA_PROPERTY_SASL_PASSWORD for `sasl.password`), then the profile, then
127.0.0.1:9092. Only a profile that `--profile` names is nearer than OTTLA_BOOTSTRAP: who names a cluster in a
command means that one, whatever the shell was set up for.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ottla.cli.failure import Failure

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
DEFAULT_PROFILE: Final = "default"
PROPERTY_VARIABLE: Final = "OTTLA_PROPERTY_"


def cluster_options(command: F) -> F:
    """Add the options that say which cluster to speak to. The command gets them as `properties`."""

    def collect(ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
        return client_properties(
            ctx.params.pop("bootstrap", None),
            ctx.params.pop("profile", None),
            parse_assignments(given),
            os.environ,
        )

    options = (
        click.option(
            "-b",
            "--bootstrap",
            metavar="HOST:PORT",
            is_eager=True,
            help=f"Brokers of the cluster, separated by commas. Default: {DEFAULT_BOOTSTRAP}.",
        ),
        click.option(
            "--profile",
            metavar="NAME",
            is_eager=True,
            help=f"A profile from the config file. Default: {DEFAULT_PROFILE}, if it exists.",
        ),
        click.option(
            "-X",
            "--property",
            "properties",
            metavar="KEY=VALUE",
            multiple=True,
            callback=collect,
            help="A client property by Kafka's name. Can be repeated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def parse_assignments(given: tuple[str, ...], option: str = "--property") -> dict[str, str]:
    """Read KEY=VALUE, any number of times. What is wrong is not shown, because it may be a secret."""
    properties = {}
    for number, assignment in enumerate(given, start=1):
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            which = "it" if len(given) == 1 else f"number {number} of {len(given)}"
            raise click.BadParameter(f"{which} is not KEY=VALUE", param_hint=option)
        properties[key.strip()] = value
    return properties


def client_properties(
    bootstrap: str | None, profile: str | None, given: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Put the properties of a client together, by Kafka's names."""
    variables = {
        name.removeprefix(PROPERTY_VARIABLE).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith(PROPERTY_VARIABLE)
    }
    found = _profile(profile or environment.get("OTTLA_PROFILE") or None)
    surrounding = environment.get("OTTLA_BOOTSTRAP")
    if surrounding and not (profile and "bootstrap.servers" in found):
        found["bootstrap.servers"] = surrounding
    properties = {**found, **variables, **given}
    if bootstrap:
        properties["bootstrap.servers"] = bootstrap
    properties.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
    return properties


def config_path() -> Path:
    """Return where profiles are."""
    return Path(os.environ.get("OTTLA_CONFIG") or Path(click.get_app_dir("ottla"), "config.toml"))


def _profile(name: str | None) -> dict[str, str]:
    named = os.environ.get("OTTLA_CONFIG")
    path = config_path()
    if named and not path.exists():
        # Without it, the command would go to another cluster.
        raise Failure(f"OTTLA_CONFIG names {path}, which does not exist; correct it, or unset it")
    document = _read_document(path)
    profiles = document.get("profiles", {})
    used = document.get("use", DEFAULT_PROFILE)
    if "use" in document and name is None and used not in profiles:
        raise Failure(f"{path} uses the profile {used!r}, which it does not have; correct it")
    if (
        not isinstance(used, str)
        or not isinstance(profiles, dict)
        or not all(isinstance(found, dict) for found in profiles.values())
    ):
        raise Failure(
            f"{path} must have tables such as [profiles.production]: see the guide to the command line"
        )
    if name is not None and name not in profiles:
        known = ", ".join(profiles) or "none"
        raise Failure(f"{path} has no profile {name!r}; it has: {known}")
    return {key: str(value) for key, value in profiles.get(name or used, {}).items()}


def _read_document(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            # Most people have no such file: for them this would be 3 ms of every command.
            import tomllib

            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        # Text that is not UTF-8, or not TOML, is a ValueError.
        raise Failure(f"cannot read {path}: {error}") from error
