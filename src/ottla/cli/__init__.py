"""The command line: `ottla up`, `ottla storage format`.

People get sentences on stderr, programs get what the command promises on stdout. Exit codes: 0 done, 1
failed, 2 used wrongly. Only click is imported up front; each command imports what it runs, so that `--help`
stays quick.
"""

from ottla.cli.main import main

__all__ = ["main"]
