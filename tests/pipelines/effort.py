"""How quickly Spark works in tests."""

from typing import Final

# Tests run for minutes, not for days. Java that compiles less, and less well, takes half the CPU until the
# first batches are done: 17 seconds instead of 34, on a busy machine.
QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
