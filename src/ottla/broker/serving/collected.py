"""Writes the rows of `served_apis` from what the handlers declare: `make reference` calls it.

python -m ottla.broker.serving.collected > src/ottla/broker/serving/served_rows.py
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from ottla.broker.serving.handlers import APIS, Declared, all_declared
from ottla.broker.serving.served_apis import Listener
from ottla.wire.apis import ApiKey

_HEAD = '''"""What handlers declare of their APIs, collected by `make reference`. Change it there, not here.

A row has the API, its versions, on which kinds of listeners it is served, and what else must be known.
"""

from typing import Final

'''


def collect() -> str:
    """Return the module with the rows."""
    for module in walk_packages(import_module(APIS).__path__, f"{APIS}."):
        import_module(module.name)
    rows = "".join(f"    ({_row(key, declared)}),\n" for key, declared in sorted(all_declared().items()))
    return f"{_HEAD}ROWS: Final = (\n{rows})\n"


def _row(key: ApiKey, declared: Declared) -> str:
    listeners = " ".join(listener.name for listener in Listener if listener in declared.listeners)
    cells = (key.name, declared.versions, listeners, " ".join(_marks(declared)))
    return ", ".join(f'"{cell}"' for cell in cells)


def _marks(declared: Declared) -> Iterator[str]:
    if declared.is_for_login:
        yield "login"
    if not declared.is_advertised:
        yield "hidden"
    if declared.has_unstable:
        yield "unstable"


if __name__ == "__main__":
    print(collect(), end="")
