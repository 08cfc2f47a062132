"""The Python client: producer, consumer and admin for Ottla and for any Kafka from 2.1 on.

It is asyncio first, built on the project's own protocol layer, and never imports the server.
"""
