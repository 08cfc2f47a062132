"""Numbers that options take, with the bounds that Kafka's protocol sets.

A number beyond them cannot be sent at all, so it is refused where it is typed, in one sentence.
"""

import math
from typing import Any, Final

import click

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1


class _FiniteRange(click.FloatRange):
    """A range of numbers. Click takes `nan` for part of any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return number


COUNT: Final = click.IntRange(1, INT64_MAX)
OFFSET: Final = click.IntRange(0, INT64_MAX)
SHIFT: Final = click.IntRange(-INT64_MAX, INT64_MAX)
RECORDS: Final = click.IntRange(1, 10**12)
"""More than anybody waits for."""
PARTITION: Final = click.IntRange(0, INT32_MAX)
PARTITIONS: Final = click.IntRange(1, INT32_MAX)
SECONDS: Final = click.IntRange(0, INT64_MAX // 1000)
"""Times are sent in milliseconds."""
PAUSE_S: Final = _FiniteRange(0.1, 86_400)
VALUE_BYTES: Final = click.IntRange(1, 1 << 26)
"""More than a broker takes, and little enough for memory."""
REPLICAS: Final = click.IntRange(1, (1 << 15) - 1)
