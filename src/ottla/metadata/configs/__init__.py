"""Configs: every key declared once, parsed, checked, layered, and described as Kafka describes it.

How to read this: `declare` says how a config is written down; `broker_*`, `topic`, `group`, `client_metrics`
and `ottla` declare them; `node` puts the broker's together; `load` reads them at start; `layers` and
`effective` find what holds for a broker, a topic or a group.
"""
