"""How much of Spark is tested. Some tests start several processes of Java, and take minutes of CPU each."""

import os
from typing import Final

# Tests run for minutes, not for days. Java that compiles less, and less well, takes half the CPU until the
# first batches are done: 17 seconds instead of 34, on a busy machine.
QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ALL_OF_SPARK = os.environ.get("OTTLA_SPARK") == "all"
