"""placeholder"""

from contextlib import nullcontext

BUGS: dict[str, object] = {}


def planted(bug: object):
    return nullcontext()
