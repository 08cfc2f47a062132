"""Regular expressions that a stranger wrote: RE2's syntax, in time that is linear in the text.

Python's own expressions can take for ever: `(a+)+b` takes twice as long with each `a` of the text. RE2 knows
no references back and no looks around, and so it never tries the same thing twice.

An expression that compiles to more than `PROGRAM_BYTES_MAX`, or whose repetitions add up to more than
`REPETITIONS_MAX`, is refused: 900 bytes of `a{1,1000}` took 18 seconds and 40 MB.
"""

import re
from functools import lru_cache
from typing import Any, Final

PROGRAM_BYTES_MAX: Final = 1 << 20
"""What a compiled expression may take in memory. `[a-z.]{1,200}-\\d+` takes 10 KB."""
REPETITIONS_MAX: Final = 5_000
"""What the counts of all repetitions may add up to: each is written out before anything is compiled."""
UNICODE_CLASSES_MAX: Final = 100
"""How many classes such as `\\pL` there may be: each takes 0.1 ms."""
_COUNT: Final = re.compile(r"\{\d+(,\d*)?\}")


class InvalidPattern(ValueError):
    """A text is no regular expression of RE2, or one that takes too much."""


@lru_cache(maxsize=128)
def compile_pattern(text: str) -> Any:
    """Return the compiled expression. Raises `InvalidPattern`."""
    # Imported only here: few need expressions, and it takes 2.5 MB.
    import re2

    if _repetitions(text) > REPETITIONS_MAX or text.lower().count(r"\p") > UNICODE_CLASSES_MAX:
        raise InvalidPattern(
            f"it has repetitions of more than {REPETITIONS_MAX} in all, "
            f"or more than {UNICODE_CLASSES_MAX} classes of characters"
        )
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        return re2.compile(text, options)
    except UnicodeEncodeError:
        raise InvalidPattern("it has half a character, for which UTF-8 has no bytes") from None
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidPattern(shown) from error


def _repetitions(text: str) -> int:
    """Return what the counts of all repetitions add up to."""
    return sum(
        max((int(number) for number in re.findall(r"\d{1,9}", match.group())), default=0)
        for match in _COUNT.finditer(text)
    )
