"""The command line. One module for each noun.

People get sentences and tables, programs get JSON (`--json`) or what the command promises on stdout. Exit
codes: 0 done, 1 failed, 2 used wrongly, 130 interrupted. Only click is imported up front; each command
imports what it runs when it runs, so that `--help` and completion stay quick.
"""

from ottla.cli.main import main

__all__ = ["main"]
