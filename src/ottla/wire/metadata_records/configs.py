"""Metadata records of configs."""

from ottla.wire.declare import i8, message, wire


@message(api_key=4, versions="0", flexible="0+")
class ConfigRecord:
    """Record a config override of a resource; a null value removes it."""

    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    name: str = wire("0+")
    value: str | None = wire("0+")
