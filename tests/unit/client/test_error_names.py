"""All errors of the client can be caught by a name from one module."""

import ast
from pathlib import Path

import ottla
from ottla import errors
from ottla.cli.reference.client import render_reference

CLIENT = Path(ottla.__file__).parent / "client"
BASES = {"Exception", "ValueError", *errors.__all__}


def declared() -> dict[str, str]:
    """Return the errors that the client declares for its users, with their modules."""
    found = {}
    for path in CLIENT.rglob("*.py"):
        module = ".".join(("ottla", *path.relative_to(CLIENT.parent).with_suffix("").parts))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                if bases & BASES:
                    found[node.name] = module
    return found


def test_every_error_is_in_one_module() -> None:
    assert set(errors.__all__) == set(declared())
    for name, module in declared().items():
        error = getattr(errors, name)
        assert (error.__name__, error.__module__) == (name, module)


def test_every_error_is_in_the_reference() -> None:
    page = render_reference()
    for name in errors.__all__:
        assert f"| `{name}` |" in page
