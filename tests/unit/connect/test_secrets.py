"""Values that must not be shown, and files that must not be read."""

import logging
from pathlib import Path

import pytest

from ottla.client.properties import InvalidProperty
from ottla.connect.configs.providers import ConfigProviders, read_providers, with_variables
from ottla.connect.configs.secrets import MaskingFormatter, Secrets

PACKAGE = "org.apache.kafka.common.config.provider."


def _providers(secrets: Secrets, allowed: Path) -> ConfigProviders:
    properties = {
        "config.providers": "file,dir",
        "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
        "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
    }
    for name in ("file", "dir"):
        properties[f"config.providers.{name}.param.allowed.paths"] = str(allowed)
    return read_providers(properties, secrets)


def test_a_link_does_not_lead_out_of_the_allowed_directory(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (tmp_path / "outside").write_text("key=value\n")
    (allowed / "link").symlink_to(tmp_path / "outside")
    providers = _providers(Secrets(), allowed)
    config = {"a": f"${{file:{allowed}/link:key}}", "b": f"${{dir:{allowed}:link}}"}

    assert providers.resolve(config) == config


def test_colons_without_an_end_are_read_in_linear_time(tmp_path: Path) -> None:
    """The time grew by the cube of their number: a thousand took three seconds."""
    config = {"a": "${" + ":" * 100_000}

    assert _providers(Secrets(), tmp_path).resolve(config) == config


def test_beginnings_without_an_end_are_read_in_linear_time(tmp_path: Path) -> None:
    resolve = _providers(Secrets(), tmp_path).resolve
    # An expression that looks for the end from each beginning would need hours.
    assert resolve({"a": "${" * 1_000_000}) == {"a": "${" * 1_000_000}
    assert resolve({"a": "${:" * 1_000_000}) == {"a": "${:" * 1_000_000}


def test_a_secret_is_hidden_wherever_it_occurs(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abcd-1234")
    secrets = Secrets()
    variable = f"${{dir:{tmp_path}:token}}"

    resolved = _providers(secrets, tmp_path).resolve({"url": f"http://me:{variable}@host"})

    assert resolved == {"url": "http://me:abcd-1234@host"}
    assert secrets.mask("cannot reach http://me:abcd-1234@host") == f"cannot reach http://me:{variable}@host"
    record = logging.LogRecord("n", logging.ERROR, "p", 1, "failed with %s", ("abcd-1234",), None)
    shown = MaskingFormatter(logging.Formatter("%(message)s"), secrets).format(record)
    assert shown == f"failed with {variable}"


def test_longer_secrets_are_hidden_whole_and_short_ones_only_as_words() -> None:
    secrets = Secrets()
    secrets.add("pass")
    secrets.add("password")
    secrets.add("5", "${env:FIVE}")
    secrets.add("")

    assert secrets.mask("password, pass, 5 of 15") == "[hidden], [hidden], ${env:FIVE} of 15"


def test_what_a_task_keeps_has_the_variables_of_its_connector() -> None:
    given = {"password": "${env:P}", "table": "a", "name": "c"}
    resolved = {**given, "password": "secret"}

    assert with_variables({**resolved, "table": "b"}, given, resolved) == {**given, "table": "b"}


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"config.providers": "a"}, "config.providers.a.class is missing"),
        ({"config.providers": "a", "config.providers.a.class": "x.Y"}, "there is no such provider"),
        (
            {
                "config.providers": "a",
                "config.providers.a.class": f"{PACKAGE}FileConfigProvider",
                "config.providers.a.param.allowed.paths": "relative",
            },
            "absolute and exist",
        ),
    ],
)
def test_wrong_providers_are_refused_with_the_reason(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidProperty, match=reason):
        read_providers(properties, Secrets())
