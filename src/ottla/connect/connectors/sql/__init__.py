"""Tables of databases: SQLite and PostgreSQL."""
