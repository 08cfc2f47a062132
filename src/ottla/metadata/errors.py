"""What can be wrong with a metadata log."""


class MetadataError(Exception):
    """The records of a metadata log, or of a snapshot of it, do not fit together.

    Such a log was not written by a working controller. A node that meets it stops: whatever it did next would
    be done on a state that the rest of the cluster does not have.
    """


class UnknownRecord(MetadataError):
    """A sound batch has a record that this release does not know: a newer one has written it."""
