"""What pytest does with the modules of Ottla before they run."""

from importlib import import_module


def test_the_modules_of_ottla_are_not_rewritten() -> None:
    # That takes seconds for each worker, and two threads that import at once can break Python 3.11 by it.
    # If it fails here only, `pip install --editable .` has not run since the plugin has its own package.
    for name in ("ottla.cli.main", "ottla.testing.plugin"):
        assert type(import_module(name).__loader__).__name__ == "SourceFileLoader"
