"""Metadata records of feature levels."""

from ottla.wire.declare import i16, message, wire


@message(api_key=12, versions="0", flexible="0+")
class FeatureLevelRecord:
    """Record the level of a feature that the cluster has agreed on; 0 removes the feature."""

    name: str = wire("0+")
    feature_level: i16 = wire("0+")
