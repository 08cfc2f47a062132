"""Turns a declared message and a version into a straight-line function that writes it.

The function takes `(message, add)`, where `add` appends a piece of bytes to a list. Record batches are added
as they are, so that a sender can hand memory views or ranges of a file to the socket without a copy. So are
the bytes of `EncodedItems`, which may stand for an array of structs.

Fields of fixed size that follow each other, and a short length after them, are written by one `pack`.
A value that does not fit its field raises `struct.error`, `TypeError` or the like here; `codec` turns these
into `Unencodable` and finds out which field it was.

As in `compile_decoder`, a generator can be made as well, which yields after each `ELEMENTS_AT_ONCE` elements.
"""

from typing import Any

from ottla.wire import primitives
from ottla.wire.compiling.source import ELEMENTS_AT_ONCE, FIXED_FORMAT, Source
from ottla.wire.declare import spec_of
from ottla.wire.encoded_items import EncodedItems
from ottla.wire.errors import NotInVersion, Unencodable
from ottla.wire.layout import Field, layout_of
from ottla.wire.versions import NO_VERSIONS


def _absent(field: str, version: int) -> None:
    raise NotInVersion(field, version)


def _too_long(field: str, length: int) -> None:
    raise Unencodable(f"{field} takes {length} bytes, at most {primitives.STRING_BYTES_MAX} are allowed")


def _shortened(message: bytes) -> bytes:
    """Return what fits of an error message. It may quote what a client has sent more than once."""
    return message[: primitives.STRING_BYTES_MAX - 3].decode(errors="ignore").encode() + b"..."


_GLOBALS: dict[str, Any] = {
    "uvarint": primitives.uvarint,
    "one_byte": primitives.ONE_BYTE,
    "long_run": primitives.pack_long_run,
    "absent": _absent,
    "too_long": _too_long,
    "shortened": _shortened,
    "join": b"".join,
    "encoded_items": EncodedItems,
}


def compile_encoder(
    cls: type[Any], version: int, message: type[Any] | None = None, *, patient: bool = False
) -> Any:
    """Return the function that writes `cls` in `version`; if it is a struct, as it lies in `message`."""
    compiler = _EncoderCompiler(version, version in spec_of(message or cls).flexible, patient)
    compiler.write_struct(cls, "message", "add")
    compiler.flush("add")
    if patient:
        # Whatever the message has, this makes the function a generator.
        compiler.source.line("return")
        compiler.source.line("yield")
    return compiler.source.function("encode(message, add)", f"encode {cls.__name__} v{version}")


class _EncoderCompiler:
    def __init__(self, version: int, flexible: bool, patient: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source(_GLOBALS)
        self._patient = patient
        if patient:
            self.source.line(f"left = {ELEMENTS_AT_ONCE}")
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
        self._write_run(add)
        self._run.clear()

    def _write_run(self, add: str, *more: tuple[str, str]) -> None:
        """Emit the write of the fixed fields collected so far and some more, but keep them collected.

        Several ways on may each have to write them.
        """
        run = [*self._run, *more]
        if not run:
            return
        formats = "".join(form for _, form in run)
        values = ", ".join(value for value, form in run if form != "x")
        if formats == "x":
            self.source.line(f"{add}(one_byte[0])")
        elif formats == "B":
            self.source.line(f"{add}(one_byte[{values}])")
        else:
            self.source.line(f"{add}({self.source.packer(formats, 'pack')}({values}))")

    def _check_absent(self, field: Field, value: str) -> None:
        if field.ignorable:
            return
        default = self.source.constant("default", field.default)
        with self.source.block(f"if {value} is not {default} and {value} != {default}:"):
            self.source.line(f"absent({field.name!r}, {self.version})")

    def _write_field(self, field: Field, value: str, add: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array or field.kind in ("string", "bytes", "records"):
            self._write_sized(field, value, add, nullable)
        elif field.struct is not None:
            self._write_nullable_struct(field, value, add, nullable)
        else:
            self._run.append((value, FIXED_FORMAT[field.kind]))

    def _write_sized(self, field: Field, value: str, add: str, nullable: bool) -> None:
        """Emit the writing of what has a length. The fixed fields before it go with its length or null."""
        compact = self.flexible and not field.never_compact
        wide = "h" if field.kind == "string" and not field.is_array else "i"
        write = self._write_array if field.is_array else self._write_bytes
        if nullable:
            with self.source.block(f"if {value} is None:"):
                self._write_run(add, ("", "x") if compact else ("-1", wide))
            with self.source.block("else:"):
                write(field, value, add, wide, compact)
        else:
            write(field, value, add, wide, compact)
        self._run.clear()

    def _write_bytes(self, field: Field, value: str, add: str, wide: str, compact: bool) -> None:
        length = self.source.name("n")
        is_string = field.kind == "string"
        if is_string:
            self.source.line(f"{value} = {value}.encode()")
            if field.name.endswith("error_message"):
                # An answer that cannot be written closes the connection, which may serve many users.
                with self.source.block(f"if len({value}) > {primitives.STRING_BYTES_MAX}:"):
                    self.source.line(f"{value} = shortened({value})")
        self.source.line(f"{length} = len({value})")
        self._write_length(length, add, wide, compact, field.name if is_string else None)
        self.source.line(f"{add}({value})")

    def _write_length(self, length: str, add: str, wide: str, compact: bool, string: str | None) -> None:
        """Emit the writing of a length; if it is that of a string, also a check that it is not too long."""
        if compact:
            with self.source.block(f"if {length} < 127:"):
                self._write_run(add, (f"{length} + 1", "B"))
            with self.source.block("else:"):
                self._check_length(length, string)
                self._write_run(add)
                self.source.line(f"{add}(uvarint({length} + 1))")
        else:
            self._check_length(length, string)
            self._write_run(add, (length, wide))

    def _check_length(self, length: str, string: str | None) -> None:
        if string is not None:
            with self.source.block(f"if {length} > {primitives.STRING_BYTES_MAX}:"):
                self.source.line(f"too_long({string!r}, {length})")

    def _write_array(self, field: Field, value: str, add: str, wide: str, compact: bool) -> None:
        length = self.source.name("n")
        self.source.line(f"{length} = len({value})")
        if field.kind in primitives.INTEGER_FORMAT:
            self._write_integers(field, value, length, add)
            return
        self._write_length(length, add, wide, compact, None)
        # What was collected has just been written on this way; another way may still have to write it.
        outer, self._run = self._run, []
        if field.struct is not None:
            with self.source.block(f"if type({value}) is encoded_items:"):
                self.source.line(f"{add}({value}.body)")
            with self.source.block("else:"):
                self._write_items(field, value, add)
        else:
            self._write_items(field, value, add)
        self._run = outer

    def _write_items(self, field: Field, value: str, add: str) -> None:
        item = self.source.name("item")
        with self.source.block(f"for {item} in {value}:"):
            if self._patient:
                self.source.count_element()
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
            self._write_run(add)
            self.source.line(f"{add}({runs}[{length}]({count}, *{value}))")
        with self.source.block("else:"):
            self._write_length(length, add, "i", self.flexible, None)
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
        fields = sorted(fields, key=lambda field: field.tag or 0)
        defaults = {field.name: self.source.constant("default", field.default) for field in fields}
        # Nearly always all of them are the very objects that stand for "not set".
        all_default = " and ".join(f"{names[name]} is {default}" for name, default in defaults.items())
        with self.source.block(f"if {all_default}:"):
            self._write_run(add, ("", "x"))
        with self.source.block("else:"):
            self.flush(add)
            self._write_tags(fields, names, defaults, add)

    def _write_tags(
        self, fields: list[Field], names: dict[str, str], defaults: dict[str, str], add: str
    ) -> None:
        count, pieces, put = self.source.name("tags"), self.source.name("pieces"), self.source.name("put")
        self.source.line(f"{count} = 0")
        self.source.line(f"{pieces} = []")
        self.source.line(f"{put} = {pieces}.append")
        for field in fields:
            value, default = names[field.name], defaults[field.name]
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
