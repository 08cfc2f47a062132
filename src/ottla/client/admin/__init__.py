"""Looking after a cluster: topics, configs, groups, transactions and the rest, one module for each noun."""

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import Results
from ottla.client.admin.routes import OutcomeUnknown

__all__ = ["Admin", "OutcomeUnknown", "Results"]
