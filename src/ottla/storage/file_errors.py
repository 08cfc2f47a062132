"""What every file of a log directory raises when its bytes are not what the format says.

What to do about it is the loader's decision: an index is rebuilt, a snapshot dropped, a checkpoint taken
for empty, and a broken meta.properties stops the start.
"""


class CorruptFile(ValueError):
    """The bytes of a file do not follow its format. `kind` names the format, not the path."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"corrupt {kind}: {reason}")
        self.kind = kind
        self.reason = reason
