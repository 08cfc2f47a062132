"""Turns a declared message and a version into a straight-line function that writes it.

The function takes `(message, add)`, where `add` appends a piece of bytes to a list. Record batches are added
as they are, so that a sender can hand memory views or ranges of a file to the socket without a copy.
"""

from typing import Any

from ottla.wire import primitives
from ottla.wire.declare import spec_of
from ottla.wire.errors import Unencodable
from ottla.wire.layout import Field, layout_of
from ottla.wire.source import FIXED_FORMAT, Source
from ottla.wire.versions import NO_VERSIONS


def _absent(field: str, version: int) -> None:
    raise Unencodable(f"{field} is set, but version {version} has no such field")


def _null(field: str) -> None:
    raise Unencodable(f"{field} is None, which this version does not allow")


def _too_long(field: str, length: int) -> None:
    raise Unencodable(f"{field} takes {length} bytes, at most {primitives.STRING_BYTES_MAX} are allowed")


_GLOBALS: dict[str, Any] = {
    "uvarint": primitives.uvarint,
    "one_byte": primitives.ONE_BYTE,
    "long_run": primitives.pack_long_run,
    "absent": _absent,
    "null": _null,
    "too_long": _too_long,
    "join": b"".join,
}


def compile_encoder(cls: type[Any], version: int) -> Any:
    """Return the function that writes `cls` in `version`."""
    compiler = _EncoderCompiler(version, flexible=version in spec_of(cls).flexible)
    compiler.write_struct(cls, "message", "add")
    compiler.flush("add")
    return compiler.source.function("encode(message, add)", f"encode {cls.__name__} v{version}")


class _EncoderCompiler:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source(_GLOBALS)
        self._run: list[tuple[str, str]] = []  # (expression, format) of fixed fields not written yet

    def write_struct(self, cls: type[Any], value: str, add: str) -> None:
        """Emit the writing of a struct."""
        fields = layout_of(cls)
        names = {field.name: self.source.name(field.name) for field in fields}
        if fields:
            self.source.line(f"{''.join(f'{names[field.name]}, ' for field in fields)} = {value}")
        tagged = []
        for field in fields:
            if self.version not in field.versions:
                self._check_absent(field, names[field.name])
            elif self.version in field.tagged:
                tagged.append(field)
            else:
                self._write_field(field, names[field.name], add)
        if self.flexible:
            self._write_tagged(tagged, names, add)

    def flush(self, add: str) -> None:
        """Emit the write of all fixed fields collected so far."""
        if not self._run:
            return
        formats = "".join(form for _, form in self._run)
        values = ", ".join(value for value, form in self._run if form != "x")
        if formats == "x":
            self.source.line(f"{add}(one_byte[0])")
        else:
            self.source.line(f"{add}({self.source.packer(formats, 'pack')}({values}))")
        self._run.clear()

    def _check_absent(self, field: Field, value: str) -> None:
        if field.ignorable:
            return
        default = self.source.constant("default", field.default)
        with self.source.block(f"if {value} is not {default} and {value} != {default}:"):
            self.source.line(f"absent({field.name!r}, {self.version})")

    def _write_field(self, field: Field, value: str, add: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array:
            self._write_array(field, value, add, nullable)
        elif field.kind in ("string", "bytes", "records"):
            self._write_sized(field, value, add, nullable)
        elif field.struct is not None:
            self._write_nullable_struct(field, value, add, nullable)
        else:
            self._run.append((value, FIXED_FORMAT[field.kind]))

    def _write_null(self, field: Field, nullable: bool, wide: str, compact: bool, add: str) -> None:
        if not nullable:
            self.source.line(f"null({field.name!r})")
        elif compact:
            self.source.line(f"{add}(one_byte[0])")
        else:
            self.source.line(f"{add}({'minus_one_' + wide})")
            self.source.constants[f"minus_one_{wide}"] = b"\xff" * (2 if wide == "h" else 4)

    def _write_sized(self, field: Field, value: str, add: str, nullable: bool) -> None:
        self.flush(add)
        compact = self.flexible and not field.never_compact
        wide = "h" if field.kind == "string" else "i"
        with self.source.block(f"if {value} is None:"):
            self._write_null(field, nullable, wide, compact, add)
        with self.source.block("else:"):
            length = self.source.name("n")
            if field.kind == "string":
                self.source.line(f"{value} = {value}.encode()")
            self.source.line(f"{length} = len({value})")
            if field.kind == "string":
                with self.source.block(f"if {length} > {primitives.STRING_BYTES_MAX}:"):
                    self.source.line(f"too_long({field.name!r}, {length})")
            self._write_length(length, wide, compact, add)
            self.source.line(f"{add}({value})")

    def _write_length(self, length: str, wide: str, compact: bool, add: str) -> None:
        if compact:
            self.source.line(f"{add}(one_byte[{length} + 1] if {length} < 127 else uvarint({length} + 1))")
        else:
            self.source.line(f"{add}({self.source.packer(wide, 'pack')}({length}))")

    def _write_array(self, field: Field, value: str, add: str, nullable: bool) -> None:
        self.flush(add)
        with self.source.block(f"if {value} is None:"):
            self._write_null(field, nullable, "i", self.flexible, add)
        with self.source.block("else:"):
            length = self.source.name("n")
            self.source.line(f"{length} = len({value})")
            if field.kind in primitives.INTEGER_FORMAT:
                self._write_integers(field, value, length, add)
            else:
                self._write_length(length, "i", self.flexible, add)
                item = self.source.name("item")
                with self.source.block(f"for {item} in {value}:"):
                    if field.struct is not None:
                        self.write_struct(field.struct, item, add)
                    else:
                        self._write_field(field._replace(is_array=False, nullable=NO_VERSIONS), item, add)
                    self.flush(add)

    def _write_integers(self, field: Field, value: str, length: str, add: str) -> None:
        prefix = "B" if self.flexible else "i"
        runs = f"counted_runs_of_{field.kind}_{prefix}"
        self.source.constants.setdefault(runs, primitives.pack_runs(field.kind, prefix))
        count = f"{length} + 1" if self.flexible else length
        with self.source.block(f"if {length} <= {primitives.SHORT_RUN_MAX}:"):
            self.source.line(f"{add}({runs}[{length}]({count}, *{value}))")
        with self.source.block("else:"):
            self._write_length(length, "i", self.flexible, add)
            self.source.line(f"{add}(long_run({field.kind!r}, {value}))")

    def _write_nullable_struct(self, field: Field, value: str, add: str, nullable: bool) -> None:
        assert field.struct is not None
        if not nullable:
            self.write_struct(field.struct, value, add)
            return
        self.flush(add)
        with self.source.block(f"if {value} is None:"):
            self.source.line(f"{add}(one_byte[255])")
        with self.source.block("else:"):
            self._run.append(("1", "b"))
            self.write_struct(field.struct, value, add)
            self.flush(add)

    def _write_tagged(self, fields: list[Field], names: dict[str, str], add: str) -> None:
        if not fields:
            self._run.append(("", "x"))
            return
        self.flush(add)
        count, pieces, put = self.source.name("tags"), self.source.name("pieces"), self.source.name("put")
        self.source.line(f"{count} = 0")
        self.source.line(f"{pieces} = []")
        self.source.line(f"{put} = {pieces}.append")
        for field in sorted(fields, key=lambda field: field.tag or 0):
            default = self.source.constant("default", field.default)
            value = names[field.name]
            with self.source.block(f"if {value} is not {default} and {value} != {default}:"):
                self._write_tag(field, value, put)
                self.source.line(f"{count} += 1")
        self.source.line(f"{add}(one_byte[{count}])")
        with self.source.block(f"if {count}:"):
            self.source.line(f"{add}(join({pieces}))")

    def _write_tag(self, field: Field, value: str, put: str) -> None:
        content, inner = self.source.name("content"), self.source.name("inner")
        self.source.line(f"{content} = []")
        self.source.line(f"{inner} = {content}.append")
        if field.struct is not None and not field.is_array and self.version in field.nullable:
            # Inside a tag, null is an unsigned varint 0 and not the byte -1 that it is elsewhere.
            with self.source.block(f"if {value} is None:"):
                self.source.line(f"{inner}(one_byte[0])")
            with self.source.block("else:"):
                self._run.append(("1", "b"))
                self.write_struct(field.struct, value, inner)
                self.flush(inner)
        else:
            self._write_field(field, value, inner)
            self.flush(inner)
        body = self.source.name("body")
        self.source.line(f"{body} = join({content})")
        self.source.line(f"{put}(uvarint({field.tag}) + uvarint(len({body})) + {body})")
