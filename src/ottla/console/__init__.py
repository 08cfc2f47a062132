"""The console: what a cluster is and does, as web pages and as JSON. A client of any Kafka.

`looks` reads a cluster and knows no HTTP, `serving` is the server with sessions and doors, and `pages` says
which address shows what.
"""
