"""`python -m ottla` is the same as `ottla`."""

from ottla.cli import main

main(prog_name="ottla")
