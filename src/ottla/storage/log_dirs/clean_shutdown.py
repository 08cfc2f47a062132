"""The mark of a clean stop (`.kafka_cleanshutdown`): nothing has to be recovered at the next start.

    {"version":0,"brokerEpoch":492}

Written and synced as the last act of a stop. Deleted at the next start *before* the logs are loaded, or a
crash while loading would look like a clean stop. The broker's epoch proves to the controller that no data
was lost since that registration.
"""

import json
from typing import Final

FILE: Final = ".kafka_cleanshutdown"
VERSION: Final = 0
NO_BROKER_EPOCH: Final = -1


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Return the bytes of the file."""
    return json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(text: bytes) -> int:
    """Read the broker epoch, or -1 if the file has none: that it exists is what says "clean"."""
    try:
        fields = json.loads(text)
    except ValueError:
        return NO_BROKER_EPOCH
    epoch = fields.get("brokerEpoch") if isinstance(fields, dict) else None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else NO_BROKER_EPOCH
