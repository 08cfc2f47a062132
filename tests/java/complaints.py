"""What a node's log says that it should not say: the lines about something that is wrong."""

import re
from typing import Final

ANY_COMPLAINT: Final = re.compile(r"[Ss]tray|[Tt]runcat|[Cc]orrupt|ERROR|FATAL|Recovering \d+ logs")
AFTER_A_KILL: Final = re.compile(r"[Ss]tray|[Cc]orrupt|ERROR(?!.*Could not find offset index)|FATAL")
"""Apache Kafka makes index files at once, Ottla when there is something to put into them. After a kill they
may be missing, and are made anew."""
ERRORS: Final = re.compile(r"ERROR|FATAL")

_HARMLESS: Final = re.compile(
    # Logs that are being deleted may be spoken of.
    r"-delete/"
    # On a busy machine Apache Kafka's controller may refuse its own registration once because it has not
    # finished starting, and its coordinators may not be done with loading when the leader epoch changes.
    # Both try again.
    r"|apiKey=CONTROLLER_REGISTRATION|Stopped loading records from __"
    # That something took long says that the machine is busy, though Apache Kafka calls it an error.
    r"|Exceptionally slow|took \d+ ms|[Tt]imed out"
)


def complaints(log: str, pattern: re.Pattern[str] = ANY_COMPLAINT) -> list[str]:
    """Return the lines of a node's log that should not be there."""
    return [line for line in log.splitlines() if pattern.search(line) and not _HARMLESS.search(line)]
