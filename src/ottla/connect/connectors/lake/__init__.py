"""Topics that are tables: Delta Lake, Iceberg and plain Parquet."""
