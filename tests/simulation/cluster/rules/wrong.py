"""What a simulation of a cluster raises when something does not hold that must."""


class Wrong(Exception):
    """Something that must hold does not. The message begins with the name of the rule."""


def must(holds: bool, complaint: str) -> None:
    """Complain if something does not hold that must."""
    if not holds:
        raise Wrong(complaint)
