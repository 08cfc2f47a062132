"""UpdateFeatures (API key 57): the cluster agrees on other feature levels."""

from ottla.wire.declare import i8, i16, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class FeatureUpdateKey:
    """A feature and the level wanted; below 1 the feature is removed."""

    feature: str = wire("0+", map_key=True)
    max_version_level: i16 = wire("0+")
    allow_downgrade: bool = wire("0", default=False)
    upgrade_type: i8 = wire("1+", default=1)


@message(api_key=57, versions="0-2", flexible="0+", listeners=("broker", "controller"))
class UpdateFeaturesRequest:
    """Raise or lower the levels of features.

    v0 only knows whether a downgrade is allowed; v1+ tells safe and unsafe ones apart, and can only check.
    """

    timeout_ms: i32 = wire("0+", default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = wire("0+")
    validate_only: bool = wire("1+", default=False)


@struct
class UpdatableFeatureResult:
    """What became of one feature (v0-v1)."""

    feature: str = wire("0+", map_key=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")


@message(api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """Say whether the features were changed: all of them or none.

    v0 and v1 also list each feature; v2 leaves that out.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    results: tuple[UpdatableFeatureResult, ...] = wire("0-1", default=(), ignorable=True)
