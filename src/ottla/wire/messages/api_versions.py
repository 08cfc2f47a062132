"""ApiVersions (API key 18): which APIs, versions and features a node supports."""

from typing import Final

from ottla.wire.declare import i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode

FEATURES_WITH_LEVEL_0_FROM: Final = 4


@message(api_key=18, versions="0-4", flexible="3+", listeners=("broker", "controller"))
class ApiVersionsRequest:
    """Ask a node which APIs and versions it speaks.

    v3+ also names the client's software. A client sends it before anything else,
    so a server that does not know the version answers in v0 instead of closing the connection.
    """

    client_software_name: str = wire("3+", default="", ignorable=True)
    client_software_version: str = wire("3+", default="", ignorable=True)


@struct
class ApiVersion:
    """One API and the range of its versions."""

    api_key: i16 = wire("0+", map_key=True)
    min_version: i16 = wire("0+")
    max_version: i16 = wire("0+")


@struct
class SupportedFeatureKey:
    """A feature and the range of levels that this node supports (v3+)."""

    name: str = wire("3+", map_key=True)
    min_version: i16 = wire("3+")
    max_version: i16 = wire("3+")


@struct
class FinalizedFeatureKey:
    """A feature and the level that the cluster has agreed on (v3+)."""

    name: str = wire("3+", map_key=True)
    max_version_level: i16 = wire("3+")
    min_version_level: i16 = wire("3+")


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """List the versions a node speaks of each API, and (v3+) the cluster's features.

    Its header is always v0, even where the body is flexible: the client may not know better yet.
    v3 leaves out features whose lowest level is 0, for old clients refuse them; v4 lists them all.
    """

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    api_keys: tuple[ApiVersion, ...] = wire("0+")
    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = wire("3+", default=(), tag=0, ignorable=True)
    finalized_features_epoch: i64 = wire("3+", default=-1, tag=1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = wire("3+", default=(), tag=2, ignorable=True)
    zk_migration_ready: bool = wire("3+", default=False, tag=3, ignorable=True)
