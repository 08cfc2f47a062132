"""How much of Spark is tested. Some tests start several processes of Java, and take minutes of CPU each."""

import os

ALL_OF_SPARK = os.environ.get("OTTLA_SPARK") == "all"
