"""`ottla profile`: names for clusters and the settings to reach them."""

import json
import tomllib
from typing import Any

import click

from ottla.cli.failure import Failure
from ottla.cli.output import json_option, show_done, show_rows
from ottla.cli.profiles import DEFAULT_PROFILE, config_path, parse_assignments


@click.group()
def profile() -> None:
    """List, create and choose profiles: a name for a cluster and the settings to reach it."""


@profile.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the profiles, and which one is used if none is named."""
    found = _read()
    used = found.get("use", DEFAULT_PROFILE)
    rows = [
        {"profile": name, "used": name == used, "bootstrap": settings.get("bootstrap.servers")}
        for name, settings in found.get("profiles", {}).items()
    ]
    show_rows(rows, as_json, f"{config_path()} has no profiles; use `ottla profile create NAME`")


@profile.command()
@click.argument("name")
@click.argument("assignments", metavar="KEY=VALUE...", nargs=-1)
@click.option("-b", "--bootstrap", metavar="HOST:PORT", required=True, help="Brokers of the cluster.")
@json_option
def create(as_json: bool, name: str, assignments: tuple[str, ...], bootstrap: str) -> None:
    """Create the profile NAME with client properties such as security.protocol=SASL_SSL.

    Passwords are better kept elsewhere: OTTLA_PROPERTY_SASL_PASSWORD is read from the environment.
    """
    settings = {"bootstrap.servers": bootstrap, **parse_assignments(assignments, "KEY=VALUE")}
    if name in _read().get("profiles", {}):
        raise Failure(
            f"{config_path()} has a profile {name!r} already; edit the file, or choose another name"
        )
    lines = [
        f"[profiles.{json.dumps(name)}]",
        *(f"{json.dumps(key)} = {json.dumps(settings[key])}" for key in settings),
    ]
    path = config_path()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    _write(f"{text.rstrip()}\n\n".lstrip() + "\n".join(lines) + "\n")
    show_done(f"created profile {name} in {path}", as_json, profile=name, path=str(path))


@profile.command()
@click.argument("name")
@json_option
def use(as_json: bool, name: str) -> None:
    """Use the profile NAME from now on, unless --profile names another one."""
    known = _read().get("profiles", {})
    if name not in known:
        raise Failure(f"{config_path()} has no profile {name!r}; it has: {', '.join(known) or 'none'}")
    lines = config_path().read_text(encoding="utf-8").splitlines()
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    kept = [line for line in lines[:first] if line.partition("=")[0].strip() != "use"]
    _write("\n".join([f"use = {json.dumps(name)}", *kept, *lines[first:]]) + "\n")
    show_done(f"profile {name} is used from now on", as_json, profile=name)


def _read() -> dict[str, Any]:
    try:
        return tomllib.loads(config_path().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {config_path()}: {error}") from error


def _write(text: str) -> None:
    from ottla.runtime.private_files import write_private

    path = config_path()
    if path.exists() and not path.is_file():
        raise Failure(f"{path} is not a file; name another one with OTTLA_CONFIG")
    try:
        tomllib.loads(text)
    except ValueError as error:
        raise Failure(f"{path} would not be valid any more ({error}): edit it by hand") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    # It may have passwords in it.
    write_private(path, text.encode())
