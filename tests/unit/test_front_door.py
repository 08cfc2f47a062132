"""`from ottla import ...`: every name is there, and none is loaded before it is used."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import ottla


@pytest.mark.parametrize("name", ottla.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(ottla, name) is not None
    assert name in dir(ottla)


def test_the_version_is_told_once() -> None:
    from ottla.client.connection import SOFTWARE_VERSION

    assert ottla.__version__ == version("ottla") == SOFTWARE_VERSION


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'ottla' has no attribute 'Produser'"):
        ottla.Produser  # type: ignore[attr-defined] # noqa: B018 - reading it is the point


def test_nothing_is_loaded_before_it_is_used() -> None:
    script = "import sys; before = set(sys.modules); import ottla; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ottla"]
