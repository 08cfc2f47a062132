"""Which tables of PostgreSQL are followed, and what the server knows of them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.connect.configs.keys import Kind, parse
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config
from ottla.model.patterns import compile_pattern

_TABLES: Final = (
    "SELECT n.nspname, c.relname, c.relkind = 'p' "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    # Rows of a partition are rows of its root.
    "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition "
    "AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%' "
    "AND n.nspname NOT LIKE 'pg\\_temp%' ORDER BY 1, 2"
)
_COLUMNS: Final = (
    "SELECT a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull, i.indrelid IS NOT NULL "
    "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_index i ON i.indrelid = c.oid "
    "AND CASE WHEN c.relreplident = 'i' THEN i.indisreplident ELSE i.indisprimary END "
    # Behind the columns of its key an index may include others.
    "AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]) "
    "WHERE c.oid = {table} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
_ROOT: Final = (
    "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.oid = pg_partition_root(%s::oid) AND c.oid <> %s::oid"
)
_UNIDENTIFIED: Final = (
    "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p') AND (c.relreplident = 'n' OR (c.relreplident = 'd' AND NOT EXISTS "
    "(SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)))"
)
_BY_ROOT: Final = " WITH (publish_via_partition_root = true)"
_PUBLISHED: Final = (
    "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s UNION "
    "SELECT n.nspname, c.relname FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
    "JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s"
)


class Table(NamedTuple):
    """A table of the database."""

    schema: str
    name: str
    is_partitioned: bool = False

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The name as SQL has it."""
        return f"{quoted_name(self.schema)}.{quoted_name(self.name)}"


class TableColumn(NamedTuple):
    """A column as the catalog has it now."""

    name: str
    type_oid: int
    modifier: int
    is_required: bool
    is_key: bool


def quoted_name(name: str) -> str:
    """Return one name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


class Catalog:
    """The tables that a configuration names, in one database."""

    def __init__(self, database: Any, config: Config) -> None:
        self._database = database
        self._config = config
        self._publication = config.get("publication.name", "dbz_publication")

    def chosen(self) -> list[Table]:
        """Return the tables that are followed. A partitioned table is one, whatever its partitions."""
        tables = [Table(*row) for row in self._database.query(_TABLES)[1]]
        return [table for table in tables if self.is_chosen(table)]

    def is_chosen(self, table: Table) -> bool:
        """Say whether a table is followed, also one that is gone."""
        return self._fits("schema", table.schema) and self._fits("table", str(table))

    def _fits(self, kind: str, name: str) -> bool:
        wanted = parse("list", Kind.LIST, self._config.get(f"{kind}.include.list", ""))
        refused = parse("list", Kind.LIST, self._config.get(f"{kind}.exclude.list", ""))
        return (not wanted or _matches(name, wanted)) and not _matches(name, refused)

    def columns(self, table: Table | int) -> list[TableColumn]:
        """Return the columns of a table, by its name or by its number. None at all: it is gone."""
        by_name = isinstance(table, Table)
        statement = _COLUMNS.format(table="to_regclass(%s)" if by_name else "%s::oid")
        parameter = table.quoted if isinstance(table, Table) else table
        return [TableColumn(*row) for row in self._database.query(statement, (parameter,))[1]]

    def root_of(self, oid: int) -> Table | None:
        """Return the table that a partition belongs to. None: it is none, or is gone."""
        found = self._database.query(_ROOT, (oid, oid))[1]
        return Table(found[0][0], found[0][1], is_partitioned=True) if found else None

    def unidentified(self, tables: Sequence[Table]) -> list[Table]:
        """Return those of the tables whose log does not say which row was changed. While such a table is
        published, PostgreSQL refuses to update and to delete its rows.
        """
        found = {tuple(row) for row in self._database.query(_UNIDENTIFIED)[1]}
        return [table for table in tables if (table.schema, table.name) in found]

    def publish(self, tables: Sequence[Table]) -> None:
        """See that the publication has the tables. Raises ConnectError."""
        found = self._database.query(
            "SELECT puballtables FROM pg_publication WHERE pubname = %s", (self._publication,)
        )[1]
        name = quoted_name(self._publication)
        there = {tuple(row) for row in self._database.query(_PUBLISHED, (self._publication,) * 2)[1]}
        is_whole = bool(found) and bool(found[0][0])
        missing = [] if is_whole else [item for item in tables if (item.schema, item.name) not in there]
        may_change = self._config.get("publication.autocreate.mode") != "disabled"
        if missing and not may_change:
            raise ConnectError(
                f"the publication {self._publication!r} does not have {', '.join(map(str, missing))}: add "
                "them, or set publication.autocreate.mode=filtered"
            )
        listed = ", ".join(item.quoted for item in missing)
        has_partitions = any(item.is_partitioned for item in tables)
        if not found and self._config.get("publication.autocreate.mode") == "all_tables":
            self._database.query(f"CREATE PUBLICATION {name} FOR ALL TABLES{_BY_ROOT}")
            return
        if not found:
            by_root = _BY_ROOT if has_partitions else ""
            self._database.query(f"CREATE PUBLICATION {name} FOR TABLE {listed}{by_root}")
            return
        if missing:
            self._database.query(f"ALTER PUBLICATION {name} ADD TABLE {listed}")
        if has_partitions:
            self._publish_by_root(name, may_change=may_change)

    def _publish_by_root(self, name: str, *, may_change: bool) -> None:
        statement = "SELECT 1 FROM pg_publication WHERE pubname = %s AND pubviaroot"
        if self._database.query(statement, (self._publication,))[1]:
            return
        if not may_change:
            raise ConnectError(
                f"the publication {self._publication!r} has changes of partitions, and not of their tables: "
                f"run ALTER PUBLICATION {name} SET (publish_via_partition_root = true)"
            )
        self._database.query(f"ALTER PUBLICATION {name} SET (publish_via_partition_root = true)")


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(compile_pattern(pattern).fullmatch(name) for pattern in patterns)
