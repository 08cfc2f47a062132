"""The client for callers without an event loop. Each of them has a private loop on a thread of its own.

They connect when they are made, and are context managers: leaving the block sends what is left and closes.
"""

from ottla.client.sync.admin import Admin

__all__ = ["Admin"]
