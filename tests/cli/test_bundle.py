"""`ottla debug bundle`: what is in it, and what must never be."""

import json
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.typing import fail, run, succeed

from ottla.model.secrets_hidden import HIDDEN, data_without_secrets, without_secrets

PLANTED = "hunter2 Correct,Horse"


@pytest.mark.parametrize(
    "text",
    [
        f"sasl.password={PLANTED}",
        f"  ssl.key.password : {PLANTED}",
        f'{{"user": "ann", "password": "{PLANTED}"}}',
        f'sasl.jaas.config=org.x.PlainLoginModule required \\\n  username=ann \\\n  password="{PLANTED}";',
        f'listener.name.a.plain.sasl.jaas.config=x required user_ann="{PLANTED}";',
        f"delegation.token.secret.key={PLANTED}",
        f"Authorization: Basic {PLANTED}",
        f"INFO log in as ann, password: {PLANTED}",
        f"OTTLA_PROPERTY_SASL_PASSWORD='{PLANTED}'",
        f"--registry-password={PLANTED}",
        f"ssl.keystore.key={PLANTED}",
        f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n-----END PRIVATE KEY-----\nafter",
        f"-----BEGIN EC PRIVATE KEY-----\n{PLANTED}",
        "https://ann:hunter2@registry:8081/subjects",
        f"SCRAM-SHA-256=[name=ann,password={PLANTED}]",
    ],
)
def test_no_planted_secret_is_left(text: str) -> None:
    for whole in (text, f"first line\n{text}\nlast line"):
        shown = without_secrets(whole)
        assert "hunter2" not in shown
        assert "Horse" not in shown
        assert HIDDEN in shown
    if "BEGIN" not in text:
        assert "last line" in without_secrets(f"{text}\nlast line")


def test_what_is_no_secret_stays() -> None:
    text = "log.dirs=/data\nsasl.tokenauth=true\nnum.partitions=3\nhttp://127.0.0.1:8081/x"
    assert without_secrets(text) == text
    data = {"sasl.password": "x", "a": [{"token": "y", "n": 1}], "passwords": None}
    assert data_without_secrets(data) == {
        "sasl.password": HIDDEN,
        "a": [{"token": HIDDEN, "n": 1}],
        "passwords": None,
    }


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=8, max_size=40))
def test_whatever_a_password_is_made_of_nothing_of_it_is_left(password: str) -> None:
    secret = f"q{password}q"
    assert secret not in without_secrets(f"sasl.password={secret}\nnext=1")


def test_a_bundle_has_the_cluster_and_no_secrets_and_is_read_by_nobody_else(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    succeed("topic", "create", name, "-c", "retention.ms=7d", bootstrap=bootstrap)
    log, config = tmp_path / "node.log", tmp_path / "server.properties"
    log.write_text(f"started\nINFO sasl.password={PLANTED}\n")
    config.write_text(f"log.dirs=/data\nssl.key.password={PLANTED}\n")
    file = tmp_path / "bundle.zip"
    words = ("debug", "bundle", str(file), "--log", str(log), "--config", str(config))
    told = succeed(*words, "--metrics", "http://127.0.0.1:1/metrics", bootstrap=bootstrap)
    assert "could not be had: metrics/1.txt" in told.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as archive:
        parts = {
            Path(one).relative_to("ottla-bundle").as_posix(): archive.read(one) for one in archive.namelist()
        }
    assert {"cluster.json", "topics.json", "groups.json", "journal.json", "README.txt", "quorum.json"} <= set(
        parts
    )
    assert json.loads(parts["topics.json"])[name]["partitions"]
    assert json.loads(parts["configs.json"])[f"topic {name}"] == {"retention.ms": "604800000"}
    assert parts["logs/1-node.log"].startswith(b"started\n")
    assert b"log.dirs=/data" in parts["configs/1-server.properties"]
    assert not any(b"hunter2" in part for part in parts.values())
    assert b"could not be had: metrics/1.txt" in parts["README.txt"]
    assert "is there already" in fail(*words, bootstrap=bootstrap)
    assert run("debug", "bundle", bootstrap=bootstrap).code == 2
