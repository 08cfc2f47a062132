"""Regular expressions that a stranger writes are RE2's: Python's can take for ever for a short text."""

import ast

from tests.tidy.source import modules, nodes

FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer"}
ALLOWED = {
    "cli/directories/graduate.py": "a name of the program, escaped",
    "client/properties_file.py": "a name of the program, escaped",
    "connect/configs/providers.py": "the allowlist.pattern of a worker's own properties",
    "connect/configs/secrets.py": "escaped texts, one beside the other",
    "mirror/following.py": "who starts the mirror wrote it",
    "mirror/link.py": "who starts the mirror wrote it",
    "mirror/maker/options.py": "who starts the mirror wrote it",
    "pipelines/source/java_patterns.py": "who starts the pipeline wrote it",
    "security/distinguished_names.py": "ssl.principal.mapping.rules of the node's own configuration",
}
"""Files that give Python an expression that is not in the source, and where it comes from."""


def test_only_named_files_give_python_an_expression_that_is_not_in_the_source() -> None:
    found = {
        str(path.relative_to("src/ottla"))
        for path, tree in modules().items()
        if path.is_relative_to("src/ottla") and _has_foreign(tree)
    }
    assert found == set(ALLOWED)


def _has_foreign(tree: ast.Module) -> bool:
    constants = _constants(tree)
    return any(_is_foreign(node, constants) for node in nodes(tree))


def _constants(tree: ast.Module) -> set[str]:
    """Return the names that a module assigns at its top."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _is_foreign(node: ast.AST, constants: set[str]) -> bool:
    """Say whether this calls a function of `re` with an expression that is not written there or above."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    module = node.func.value
    if not isinstance(module, ast.Name) or module.id != "re" or node.func.attr not in FUNCTIONS:
        return False
    names = {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
    return not names <= constants
