"""Python source under construction: lines, indentation, fresh names, and the constants it refers to."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

FIXED_FORMAT = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "error_code": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}


ELEMENTS_AT_ONCE = 256
"""After how many elements of arrays a patient codec yields."""


class Source:
    """Collects the body of one function."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self.constants = dict(constants)
        self._lines: list[str] = []
        self._depth = 1
        self._names = 0

    def line(self, text: str) -> None:
        """Add a statement at the current depth."""
        self._lines.append(" " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Indent what is added inside."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def count_element(self) -> None:
        """Add the count of an element, and a yield when there were enough of them."""
        self.line("left -= 1")
        with self.block("if not left:"):
            self.line(f"left = {ELEMENTS_AT_ONCE}")
            self.line("yield")

    def name(self, base: str) -> str:
        """Return a local name that nothing else uses."""
        self._names += 1
        return f"{base}_{self._names}"

    def constant(self, base: str, value: Any) -> str:
        """Return a global name that stands for a value."""
        for name, known in self.constants.items():
            if known is value:
                return name
        name = self.name(base)
        self.constants[name] = value
        return name

    def packer(self, formats: str, method: str) -> str:
        """Return the name of a bound method of a Struct."""
        name = f"{method}_{formats.replace('?', 't')}"
        if name not in self.constants:
            self.constants[name] = getattr(Struct(f">{formats}"), method)
        return name

    def function(self, signature: str, title: str) -> Any:
        """Compile the lines into a function. `title` shows up in tracebacks and profiles."""
        text = f"def {signature}:\n" + "\n".join(self._lines or [" pass"])
        exec(compile(text, f"<{title}>", "exec"), self.constants)  # noqa: S102 - made from declarations only
        return self.constants[signature.partition("(")[0]]
