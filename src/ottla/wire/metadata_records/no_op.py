"""The metadata record that says nothing."""

from ottla.wire.declare import message


@message(api_key=20, versions="0", flexible="0+")
class NoOpRecord:
    """Record nothing: written now and then so that the high watermark keeps moving."""
