"""Turns a declared message and a version into a straight-line function that reads it.

The function takes `(buffer, position, end)` and returns `(message, position)`. Structs are read in line, not
by calls. Fields of fixed size that follow each other, and the length byte of whatever comes next, are read by
one `unpack_from`.

Every length and count is checked against the bytes left before anything is made of it. Reading beyond the end
raises `struct.error` or `IndexError` here; `codec` turns these into `MalformedBytes`. For that to hold,
`buffer` must end at `end`.
"""

from typing import Any

from ottla.model.uuid import Uuid
from ottla.wire import primitives
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ERROR_CODE_BY_NUMBER
from ottla.wire.layout import Field, layout_of
from ottla.wire.source import FIXED_FORMAT, Source
from ottla.wire.versions import NO_VERSIONS

_GLOBALS: dict[str, Any] = {
    "new": tuple.__new__,
    "new_bytes": bytes.__new__,
    "Uuid": Uuid,
    "error_codes": ERROR_CODE_BY_NUMBER,
    "rest_of_uvarint": primitives.read_rest_of_uvarint,
    "not_null": primitives.not_null,
    "too_short": primitives.too_short,
    "too_many": primitives.too_many,
    "too_many_tags": primitives.too_many_tags,
    "bad_tag": primitives.bad_tag,
    "long_run": primitives.unpack_long_run,
}
_BYTES = {"B": 1, "b": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}


def compile_decoder(cls: type[Any], version: int) -> Any:
    """Return the function that reads `cls` in `version`."""
    compiler = _DecoderCompiler(version, flexible=version in spec_of(cls).flexible)
    result = compiler.read_struct(cls)
    compiler.flush()
    compiler.source.line(f"return {result}, position")
    return compiler.source.function("decode(buffer, position, end)", f"decode {cls.__name__} v{version}")


def smallest_size(cls: type[Any], version: int, flexible: bool) -> int:
    """Return the fewest bytes a struct can take: what bounds a count of them."""
    size = 1 if flexible else 0
    for field in layout_of(cls):
        if version not in field.versions or version in field.tagged:
            continue
        if field.is_array or field.kind in ("string", "bytes", "records"):
            compact = flexible and not field.never_compact
            size += 1 if compact else 2 if field.kind == "string" and not field.is_array else 4
        elif field.struct is not None:
            nullable = version in field.nullable
            size += 1 if nullable else smallest_size(field.struct, version, flexible)
        else:
            size += _BYTES[FIXED_FORMAT[field.kind]]
    return max(size, 1)


class _DecoderCompiler:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source(_GLOBALS)
        self._run: list[tuple[str, str]] = []  # (target, format) of fixed fields not read yet
        self._after_run: list[str] = []  # what turns raw values of the run into domain types

    def read_struct(self, cls: type[Any]) -> str:
        """Emit the reading of a struct; return the expression that makes it."""
        values: dict[str, str] = {}
        tagged: list[Field] = []
        for field in layout_of(cls):
            if self.version not in field.versions:
                values[field.name] = self.source.constant("default", field.default)
            elif self.version in field.tagged:
                tagged.append(field)
                values[field.name] = self.source.name(field.name)
            else:
                values[field.name] = self._read_field(field)
        if self.flexible:
            self._read_tagged(tagged, values)
        names = "".join(f"{values[field.name]}, " for field in layout_of(cls))
        return f"new({self.source.constant(cls.__name__, cls)}, ({names}))"

    def flush(self) -> None:
        """Emit the read of all fixed fields collected so far."""
        if not self._run:
            return
        formats = "".join(form for _, form in self._run)
        targets = ", ".join(target for target, _ in self._run)
        size = sum(_BYTES[form] for _, form in self._run)
        if formats == "B":
            self.source.line(f"{targets} = buffer[position]")
        else:
            self.source.line(f"{targets}, = {self.source.packer(formats, 'unpack_from')}(buffer, position)")
        self.source.line(f"position += {size}")
        for line in self._after_run:
            self.source.line(line)
        self._run.clear()
        self._after_run.clear()

    def _read_field(self, field: Field) -> str:
        target = self.source.name(field.name)
        nullable = self.version in field.nullable
        if field.is_array:
            self._read_array(field, target, nullable)
        elif field.kind in ("string", "bytes", "records"):
            self._read_sized(field, target, nullable)
        elif field.struct is not None:
            self._read_nullable_struct(field, target, nullable)
        else:
            self._run.append((target, FIXED_FORMAT[field.kind]))
            if field.kind == "uuid":
                self._after_run.append(f"{target} = new_bytes(Uuid, {target})")
            elif field.kind == "error_code":
                self._after_run.append(f"{target} = error_codes[{target}]")
        return target

    def _read_length(self, wide: str, compact: bool) -> str:
        """Emit the read of a length or count; null becomes a negative number."""
        length = self.source.name("n")
        self._run.append((length, "B" if compact else wide))
        self.flush()
        if compact:
            with self.source.block(f"if {length} > 127:"):
                self.source.line(f"{length}, position = rest_of_uvarint(buffer, position, {length})")
            self.source.line(f"{length} -= 1")
        return length

    def _read_sized(self, field: Field, target: str, nullable: bool) -> None:
        compact = self.flexible and not field.never_compact
        length = self._read_length("h" if field.kind == "string" else "i", compact)
        with self.source.block(f"if {length} < 0:"):
            self.source.line(f"{target} = None" if nullable else f"not_null({field.name!r})")
        with self.source.block("else:"):
            stop = self.source.name("stop")
            self.source.line(f"{stop} = position + {length}")
            limit = f" or {length} > {primitives.STRING_BYTES_MAX}" if field.kind == "string" else ""
            with self.source.block(f"if {stop} > end{limit}:"):
                self.source.line(f"too_short({field.name!r}, {length}, end - position)")
            piece = f"buffer[position:{stop}]"
            made = {"string": f"str({piece}, 'utf-8')", "bytes": f"bytes({piece})", "records": piece}
            self.source.line(f"{target} = {made[field.kind]}")
            self.source.line(f"position = {stop}")

    def _read_array(self, field: Field, target: str, nullable: bool) -> None:
        length = self._read_length("i", self.flexible)
        with self.source.block(f"if {length} < 0:"):
            self.source.line(f"{target} = None" if nullable else f"not_null({field.name!r})")
        with self.source.block("else:"):
            if field.kind in primitives.INTEGER_FORMAT:
                self._read_integers(field, target, length)
            else:
                self._read_elements(field, target, length)

    def _read_integers(self, field: Field, target: str, length: str) -> None:
        runs = f"runs_of_{field.kind}"
        self.source.constants.setdefault(runs, primitives.unpack_runs(field.kind))
        self.source.line(
            f"{target} = {runs}[{length}](buffer, position) if {length} <= {primitives.SHORT_RUN_MAX} "
            f"else long_run({field.kind!r}, buffer, position, {length}, end)"
        )
        self.source.line(f"position += {_BYTES[primitives.INTEGER_FORMAT[field.kind]]} * {length}")

    def _read_elements(self, field: Field, target: str, length: str) -> None:
        element = field._replace(is_array=False, nullable=NO_VERSIONS)
        if field.struct is not None:
            size = smallest_size(field.struct, self.version, self.flexible)
        else:
            size = 16 if field.kind == "uuid" else 1 if self.flexible else 2
        with self.source.block(f"if {length} * {size} > end - position:"):
            self.source.line(f"too_many({length}, end - position)")
        items, add = self.source.name("items"), self.source.name("add")
        self.source.line(f"{items} = []")
        self.source.line(f"{add} = {items}.append")
        with self.source.block(f"for _ in range({length}):"):
            made = self.read_struct(field.struct) if field.struct is not None else self._read_field(element)
            self.flush()
            self.source.line(f"{add}({made})")
        self.source.line(f"{target} = tuple({items})")

    def _read_nullable_struct(self, field: Field, target: str, nullable: bool) -> None:
        assert field.struct is not None
        if not nullable:
            self._read_struct_now(field.struct, target)
            return
        present = self.source.name("present")
        self._run.append((present, "b"))
        self.flush()
        with self.source.block(f"if {present} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self._read_struct_now(field.struct, target)

    def _read_struct_now(self, cls: type[Any], target: str) -> None:
        made = self.read_struct(cls)
        self.flush()
        self.source.line(f"{target} = {made}")

    def _read_tagged(self, fields: list[Field], values: dict[str, str]) -> None:
        count = self.source.name("tags")
        self._run.append((count, "B"))
        self.flush()
        for field in fields:
            self.source.line(f"{values[field.name]} = {self.source.constant('default', field.default)}")
        with self.source.block(f"if {count}:"):
            with self.source.block(f"if {count} > {primitives.TAGGED_FIELDS_MAX}:"):
                self.source.line(f"too_many_tags({count})")
            tag, previous, stop = (
                self.source.name("tag"),
                self.source.name("previous"),
                self.source.name("stop"),
            )
            self.source.line(f"{previous} = -1")
            with self.source.block(f"for _ in range({count}):"):
                self._read_tag_header(tag, previous, stop)
                for field in sorted(fields, key=lambda field: field.tag or 0):
                    with self.source.block(f"if {tag} == {field.tag}:"):
                        self._read_tag_content(field, values[field.name])
                        with self.source.block(f"if position != {stop}:"):
                            self.source.line(f"bad_tag({tag})")
                self.source.line(f"position = {stop}")

    def _read_tag_header(self, tag: str, previous: str, stop: str) -> None:
        for target in (tag, stop):
            self.source.line(f"{target} = buffer[position]")
            self.source.line("position += 1")
            with self.source.block(f"if {target} > 127:"):
                self.source.line(f"{target}, position = rest_of_uvarint(buffer, position, {target})")
        self.source.line(f"{stop} += position")
        with self.source.block(f"if {tag} <= {previous} or {stop} > end:"):
            self.source.line(f"bad_tag({tag})")
        self.source.line(f"{previous} = {tag}")

    def _read_tag_content(self, field: Field, target: str) -> None:
        if field.struct is not None and not field.is_array and self.version in field.nullable:
            # Inside a tag, null is an unsigned varint 0 and not the byte -1 that it is elsewhere.
            self.source.line("position += 1")
            with self.source.block("if buffer[position - 1] == 0:"):
                self.source.line(f"{target} = None")
            with self.source.block("else:"):
                self._read_struct_now(field.struct, target)
            return
        made = self._read_field(field)
        self.flush()
        self.source.line(f"{target} = {made}")
