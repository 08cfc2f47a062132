"""Metadata records of the migration from ZooKeeper."""

from ottla.wire.declare import i8, message, wire


@message(api_key=21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    """Record how far the migration from ZooKeeper has come: read from old logs."""

    zk_migration_state: i8 = wire("0+")
