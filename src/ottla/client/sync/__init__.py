"""The client for callers without an event loop. Each of them has a private loop on a thread of its own.

They connect when they are made, and are context managers: leaving the block sends what is left and closes.
"""

from ottla.client.sync.admin import Admin
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.producer import Delivery, Producer
from ottla.client.sync.share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Delivery", "Producer", "ShareConsumer"]
