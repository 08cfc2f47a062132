"""Metadata records of access rules."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, message, wire


@message(api_key=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    """Record an access rule: who, from where, may or may not do what to which resource."""

    id: Uuid = wire("0+")
    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    pattern_type: i8 = wire("0+")
    principal: str = wire("0+")
    host: str = wire("0+")
    operation: i8 = wire("0+")
    permission_type: i8 = wire("0+")


@message(api_key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    """Record that an access rule is gone."""

    id: Uuid = wire("0+")
