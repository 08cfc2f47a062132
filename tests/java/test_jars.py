"""A comparison that cannot be made is never passed over in silence."""

import pytest
from tests.java import jars


def test_missing_java_skips_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="java is not installed"):
        jars.missing("java is not installed")


def test_missing_java_fails_where_everything_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="java is not installed, and CI=true asks for it"):
        jars.missing("java is not installed")
