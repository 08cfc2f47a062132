"""The Spark session of a worker: opened by the first connector that needs one, and shared by all."""

import threading
from typing import TYPE_CHECKING, Any, Final

from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_opening: Final = threading.Lock()
_opened: list[Any] = []


def shared_session(config: Config) -> "SparkSession":
    """Return the session. What the first connector says of it counts. Blocks for some seconds once."""
    with _opening:
        if not _opened:
            try:
                from ottla.pipelines.spark.session import MissingPiece, open_session
            except ImportError as error:
                raise ConnectError(
                    f"the package {error.name!r} is missing: install it with pip install 'ottla[pipelines]'"
                ) from error
            settings = {
                f"spark.{name.removeprefix('spark.conf.')}": value
                for name, value in config.items()
                if name.startswith("spark.conf.")
            }
            try:
                _opened.append(
                    open_session("ottla connect", config.get("spark.master") or "local[*]", settings)
                )
            except MissingPiece as error:
                raise ConnectError(str(error)) from error
            _opened[0].sparkContext.setLogLevel("ERROR")
        session: SparkSession = _opened[0]
        return session


def close_shared_session() -> None:
    """Stop the session and its Java process, if there is one."""
    if _opened:
        from ottla.pipelines.spark.session import end_java

        _opened.pop().stop()
        end_java()
