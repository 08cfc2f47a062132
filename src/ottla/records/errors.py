"""What can be wrong with the bytes of a record batch. All of it is a `RecordsError`.

Bytes from outside raise these and nothing else. An `AssertionError` is a bug of ours.
"""


class RecordsError(ValueError):
    """Bytes that are no record batch, or not one that can be read."""


class CorruptBatch(RecordsError):
    """The frame of a batch is impossible: its size, its magic or its checksum."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"corrupt batch at position {position}: {reason}")
        self.position = position
        self.reason = reason


class InvalidRecord(RecordsError):
    """One record inside a batch is malformed. `index` counts from 0 within the batch."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"invalid record {index}: {reason}")
        self.index = index
        self.reason = reason


class UnknownCodec(RecordsError):
    """The codec bits name no codec (5 to 7)."""

    def __init__(self, codec_id: int) -> None:
        super().__init__(f"unknown compression codec {codec_id}")
        self.codec_id = codec_id


class CorruptCompression(RecordsError):
    """Compressed bytes that are cut short, damaged, or followed by something else."""

    def __init__(self, codec: str, reason: str) -> None:
        super().__init__(f"corrupt {codec} data: {reason}")
        self.codec = codec
        self.reason = reason


class DecompressionTooLarge(RecordsError):
    """Decompressing would have given more bytes than the caller allows."""

    def __init__(self, codec: str, limit_bytes: int) -> None:
        super().__init__(f"{codec} data decompresses to more than the allowed {limit_bytes} bytes")
        self.codec = codec
        self.limit_bytes = limit_bytes
