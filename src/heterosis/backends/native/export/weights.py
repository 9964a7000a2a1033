"""A file of parameters beside an exported library, and the code that maps it into memory.

It begins with room for what `heterosis_open_with` gives, and ends in a seal as a library does. The
library knows the seal: a file that is cut short, or of another export, has another one.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I32,
    I64,
    PTR,
    Function,
    Module,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.export.seal import SEAL_BYTES
from heterosis.backends.native.export.tables import HANDLE_BYTES

_READ, _WRITE, _PRIVATE = 1, 2, 2  # of mmap and mprotect
_END = 2  # of lseek
_NULL = Value(PTR, "null")
_RETURNS = {
    "lseek": I64, "pread": I64, "mmap": PTR, "mprotect": I32, "munmap": I32, "close": I32,
}  # fmt: skip


def emit_map(module: Module, weights: bytes) -> None:
    """Define `ptr @heterosis.map(path)`: the memory of the file, or NULL if it is not `weights`."""
    f = module.function("heterosis.map", [("path", PTR)], PTR)
    (path,) = f.parameters
    f.leave_if(f.compare("eq", path, _NULL), lambda: f.ret(_NULL))
    module.declare("open", I32, [PTR, I32, Type("...")])
    mode = 0o2000000  # O_RDONLY | O_CLOEXEC
    file = f.emit(I32, f"call i32 (ptr, i32, ...) @open({path}, i32 {mode})")
    f.leave_if(f.compare("slt", file, constant(I32, 0)), lambda: f.ret(_NULL))
    right = _is_right(f, file, weights)
    (found,) = f.if_else(right, lambda: [_mapped(f, file, len(weights))], lambda: [_NULL])
    _call(f, "close", file)
    f.ret(found)


def emit_unmap(f: Function, library: Value, size: int) -> None:
    """Give the memory of a file of this size back."""
    _call(f, "munmap", library, constant(I64, size))


def _is_right(f: Function, file: Value, weights: bytes) -> Value:
    """Whether a file has the size and the seal."""
    read = f.allocate(I64, SEAL_BYTES // 8)
    size = _call(f, "lseek", file, constant(I64, 0), constant(I32, _END))
    found = f.compare("eq", size, constant(I64, len(weights)))
    many, at = constant(I64, SEAL_BYTES), constant(I64, len(weights) - SEAL_BYTES)
    for i in range(SEAL_BYTES // 8):
        f.store(constant(I64, 0), f.offset(I64, read, i))
    _call(f, "pread", file, read, many, at)
    for i in range(SEAL_BYTES // 8):
        word = weights[len(weights) - SEAL_BYTES + 8 * i :][:8]
        expected = constant(I64, int.from_bytes(word, "little", signed=True))
        same = f.compare("eq", f.load(I64, f.offset(I64, read, i)), expected)
        found = f.binary("and", found, same)
    return found


def _mapped(f: Function, file: Value, size: int) -> Value:
    """The memory of a file, which is only read but for its beginning."""
    begin, whole = constant(I64, 0), constant(I64, size)
    read, private = constant(I32, _READ), constant(I32, _PRIVATE)
    memory = _call(f, "mmap", _NULL, whole, read, private, file, begin)
    failed = f.compare("eq", f.convert("ptrtoint", memory, I64), constant(I64, -1))

    def opened() -> list[Value]:
        both = constant(I32, _READ | _WRITE)
        refused = _call(f, "mprotect", memory, constant(I64, HANDLE_BYTES), both)
        there = f.compare("eq", refused, constant(I32, 0))
        return [f.select(there, memory, _NULL)]

    (found,) = f.if_else(f.binary("xor", failed, constant(I1, 1)), opened, lambda: [_NULL])
    return found


def _call(f: Function, name: str, *arguments: Value) -> Value:
    return f.call(name, arguments, _RETURNS[name])
