"""Variables in configurations become the same values as with Kafka's own config providers."""

import json
import random
from pathlib import Path

import pytest
from tests.java.oracle import Oracle

from ottla.connect.configs.providers import read_providers
from ottla.connect.configs.secrets import Secrets
from ottla.connect.errors import ConnectError

PACKAGE = "org.apache.kafka.common.config.provider."
PATTERN = "OTTLA_TEST.*"
ENVIRONMENT = {"OTTLA_TEST_A": "from the environment", "OTHER_B": "not allowed"}


def _directory(root: Path) -> tuple[Path, Path]:
    allowed, other = root / "allowed", root / "other"
    for place in (allowed, other, allowed / "inner"):
        place.mkdir()
    for place in (allowed, other):
        (place / "db.properties").write_text("user=me\npassword = a b\\u00e9\\\n  c \nempty=\nümlaut=größe\n")
        (place / "token").write_text("first\nsecond\n")
    return allowed, other


def _values(rng: random.Random, allowed: Path, other: Path) -> list[str]:
    providers = ["file", "dir", "env", "nobody", ""]
    paths = [
        str(place / name) for place in (allowed, other) for name in ("", "db.properties", "none", "inner")
    ]
    paths += [f"{allowed}/../other/db.properties", f"{allowed}/inner/../db.properties", ""]
    keys = [
        "user",
        "password",
        "empty",
        "ümlaut",
        "token",
        "inner",
        "OTTLA_TEST_A",
        "OTHER_B",
        "none",
        "",
        "a:b",
    ]
    pieces = ["", "plain", "${", "}", "$", ":", " "]
    values = []
    for _ in range(4000):
        text = ""
        for _ in range(rng.randrange(1, 4)):
            provider, path, key = rng.choice(providers), rng.choice(paths), rng.choice(keys)
            with_path = rng.random() < 0.7
            variable = f"${{{provider}:{path}:{key}}}" if with_path else f"${{{provider}:{key}}}"
            text += rng.choice(pieces) + variable
        values.append(text + rng.choice(pieces))
    return values


def _by_java(oracle: Oracle, values: list[str], root: Path) -> list[str]:
    question = {
        "allowed": str(root / "allowed"), "pattern": PATTERN, "environment": ENVIRONMENT, "values": values,
    }  # fmt: skip
    results: list[str] = json.loads(oracle.ask("ConfigProviders", json.dumps(question), root))["results"]
    return results


def test_thousands_of_values_are_resolved_as_by_kafka(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in ENVIRONMENT.items():
        monkeypatch.setenv(name, text)
    allowed, other = _directory(tmp_path)
    values = _values(random.Random(5), allowed, other)
    properties = {"config.providers": "file,dir,env"}
    for name, kind in (("file", "File"), ("dir", "Directory"), ("env", "EnvVar")):
        properties[f"config.providers.{name}.class"] = f"{PACKAGE}{kind}ConfigProvider"
        properties[f"config.providers.{name}.param.allowed.paths"] = str(allowed)
    properties["config.providers.env.param.allowlist.pattern"] = PATTERN
    providers = read_providers(properties, Secrets())

    def ours(value: str) -> str:
        try:
            return "=" + providers.resolve({"key": value})["key"]
        except ConnectError as error:
            return f"!{error}"

    theirs = _by_java(oracle, values, tmp_path)
    assert len(theirs) == len(values)
    for value, expected in zip(values, theirs, strict=True):
        found = ours(value)
        if expected.startswith("!"):
            # Several variables can fail at once, and Kafka does not say which it asks for first.
            assert found.startswith("!"), value
            assert found.split(" ")[0] in ("!Could", "!Path"), found
        else:
            assert found == expected, value
