"""Byte code for the processes that tests start.

Whoever runs the tests may have told Python to keep none (`PYTHONDONTWRITEBYTECODE`). Then each of hundreds of
processes would compile all of Ottla again, which takes longer than everything else of a start. An installed
Ottla starts from byte code, too.
"""

import os
import sys
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parents[2] / "target" / "byte-code"


def keep_byte_code() -> None:
    """Have this process, and those that it starts, keep byte code, but not beside the sources."""
    if not sys.dont_write_bytecode:
        return
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(DIRECTORY)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
