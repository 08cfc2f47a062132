"""Walks through the files and directories of a simulated disk."""

from collections.abc import Iterable, Sequence

from ottla.testing.power_cut import DirectoryNode, Node


def walk(directory: DirectoryNode) -> Iterable[Node]:
    """Go through everything below a directory, in order of names."""
    for name in sorted(directory.entries):
        node = directory.entries[name]
        yield node
        if isinstance(node, DirectoryNode):
            yield from walk(node)


def settle_names(root: DirectoryNode) -> Sequence[Node]:
    """Make the durable names the only ones, and return what can still be reached."""
    reached: list[Node] = [root]
    for node in reached:
        if isinstance(node, DirectoryNode):
            node.entries = dict(node.durable)
            reached.extend(node.entries[name] for name in sorted(node.entries))
    return reached


def copy_directory(directory: DirectoryNode, copies: dict[int, Node]) -> DirectoryNode:
    found = copies.get(id(directory))
    if isinstance(found, DirectoryNode):
        return found
    twin = DirectoryNode(directory.modified_ms)
    copies[id(directory)] = twin
    for name, node in directory.entries.items():
        twin.entries[name] = copy_node(node, copies)
    for name, node in directory.durable.items():
        twin.durable[name] = copy_node(node, copies)
    return twin


def copy_node(node: Node, copies: dict[int, Node]) -> Node:
    if isinstance(node, DirectoryNode):
        return copy_directory(node, copies)
    if id(node) not in copies:
        copies[id(node)] = node.copy()
    return copies[id(node)]
