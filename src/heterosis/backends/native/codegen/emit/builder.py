"""Writes LLVM IR as text: typed values, arithmetic, loops.

Text, because parsing it costs LLVM less than building the same module through Python objects
costs Python, and because every stage can be printed. Sizes are `int | Value`: with integers the
arithmetic folds here and the code is specialised, with values the same lowering serves any size.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from heterosis.backends.native.codegen.emit.identical import renamed, stand_ins
from heterosis.ir.table_sizes import divided, largest, smallest

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.target import Target

Size: TypeAlias = "int | Value"
# What emits one way to go on, and gives the values that come of it, if any.
Branch: TypeAlias = "Callable[[], Sequence[Value] | None]"


def known(size: Size | None) -> int:
    """A size that is a number already."""
    assert isinstance(size, int), f"{size} is not known yet"
    return size


class Type(NamedTuple):
    """An LLVM first-class type: `lanes` elements, or a scalar where `lanes` is 0."""

    element: str
    lanes: int = 0

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.element}>" if self.lanes else self.element

    @property
    def scalar(self) -> Type:
        return Type(self.element)

    @property
    def bits(self) -> int:
        """Width of one element."""
        return _BITS[self.element]

    @property
    def is_float(self) -> bool:
        return self.element in _SUFFIX

    @property
    def suffix(self) -> str:
        """The overloaded part of an intrinsic's name: `f32`, `v8f32`, `v4i64`."""
        name = _SUFFIX.get(self.element, self.element)
        return f"v{self.lanes}{name}" if self.lanes else name

    def of(self, element: str) -> Type:
        """The same shape with another element: a comparison's `i1`, a float's integer bits."""
        return Type(element, self.lanes)

    @property
    def as_integer(self) -> Type:
        """The integer type with the same number of bits."""
        return self.of(f"i{self.bits}")


_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}
_BITS |= {f"i{n}": n for n in (1, 8, 16, 32, 64)}
_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}

VOID, PTR = Type("void"), Type("ptr")
I1, I8, I16, I32, I64 = (Type(f"i{n}") for n in (1, 8, 16, 32, 64))
HALF, BFLOAT, FLOAT, DOUBLE = Type("half"), Type("bfloat"), Type("float"), Type("double")

LINE = 64  # bytes that are fetched at once
# The level of cache to fetch what is not wanted in an instant into. The first one has room for
# little, and waits for few lines at a time: too few for what comes from memory.
SECOND_LEVEL = 2


class Value(NamedTuple):
    """An SSA name or a literal, with its type."""

    type: Type
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def _is(size: Size, number: int) -> bool:
    """Whether it is this number at all sizes of programs: one that follows from these is not
    asked."""
    return type(size) is int and size == number


def constant(type_: Type, number: float | bool) -> Value:
    """`number` as a literal of `type_`, repeated in every lane. Exact for every float value."""
    literal = _float_literal(type_.element, number) if type_.is_float else str(int(number))
    if not type_.lanes:
        return Value(type_, literal)
    return Value(type_, f"splat ({type_.element} {literal})")


def is_literal(value: Value) -> bool:
    """Whether `value` is a number written in the code, and not NaN."""
    if value.text.startswith("%"):
        return False
    return not value.type.is_float or constant(value.type, math.nan) != value


def _float_literal(element: str, number: float) -> str:
    number = math.nan if math.isnan(number) else number  # of one sign: all NaN are one literal
    if element == "half":
        return f"0xH{struct.unpack('<H', _packed('<e', number))[0]:04X}"
    if element == "bfloat":
        bits = struct.unpack("<I", _packed("<f", number))[0]
        return f"0xR{bits >> 16:04X}"
    if element == "float":  # LLVM spells a float as the double of the same value
        number = struct.unpack("<f", _packed("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _packed(layout: str, number: float) -> bytes:
    """The number rounded to a narrower type; what is beyond its largest is infinite there."""
    try:
        return struct.pack(layout, number)
    except OverflowError:
        return struct.pack(layout, math.copysign(math.inf, number))


def _moved(type_: Type) -> Type:
    """What parts of a vector are loaded and stored as. LLVM takes vectors of bfloat apart there,
    and rounds each element by a function that exported libraries do not have."""
    return type_.as_integer if type_.element == "bfloat" else type_


def literal_bits(type_: Type, bits: int) -> Value:
    """An integer constant given by its bit pattern, which may have the top bit set."""
    width = type_.bits
    return constant(type_, bits - (1 << width) if bits >> (width - 1) else bits)


class Loop:
    """Handed to the body of `Function.loop`: the index, the carried values, their successors."""

    def __init__(self, index: Value, carried: list[Value]):
        self.index = index
        self.carried = carried
        self.next = list(carried)
        self.results: list[Value] = []
        self.more = constant(I1, 0)  # only `repeat` asks


class Function:
    """One LLVM function under construction. Statements are appended in order."""

    def __init__(
        self,
        module: Module,
        name: str,
        parameters: Sequence[tuple[str, Type]],
        returns: Type = VOID,
        *,
        linkage: str = "internal",
        attributes: str = "",
    ):
        self.module, self.name, self.returns, self.linkage = module, name, returns, linkage
        self.attributes = attributes
        self.parameters = [Value(type_, f"%{label}") for label, type_ in parameters]
        self._header = f"define {linkage} {returns} @{name}("
        self._header += ", ".join(str(p) for p in self.parameters) + f") nounwind {attributes} {{"
        self._lines: list[str] = []
        self._block = "entry"
        self._count = 0
        self._known: dict[Hashable, Value] = {}
        self.unrounded: dict[tuple[str, Value], Value] = {}  # by the element type, and the result
        self._uniform: set[str] = set()  # vectors of one number

    # -- text ---------------------------------------------------------------------------------

    def text(self) -> str:
        return "\n".join([self._header, "entry:", *self._lines, "}", ""])

    def _fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def emit(self, type_: Type, instruction: str) -> Value:
        """Append `instruction` and name its result."""
        name = f"%{self._fresh()}"
        self._lines.append(f"  {name} = {instruction}")
        return Value(type_, name)

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """What `compute` emits, or what it emitted for `key` in the first block."""
        if key in self._known:
            return self._known[key]
        value = compute()
        if self._block == "entry":
            self._known[key] = value
        return value

    def statement(self, instruction: str) -> None:
        self._lines.append(f"  {instruction}")

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name

    # -- sizes: folded when both are known ----------------------------------------------------

    def i64(self, size: Size) -> Value:
        """A size as an `i64` value."""
        return constant(I64, size) if isinstance(size, int) else size

    def _size(self, instruction: str, fold: Callable[[int, int], int], a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return fold(a, b)
        return self.emit(I64, f"{instruction} i64 {self.i64(a).text}, {self.i64(b).text}")

    def add_size(self, a: Size, b: Size) -> Size:
        if _is(a, 0) or _is(b, 0):
            return b if _is(a, 0) else a
        return self._size("add nsw", lambda x, y: x + y, a, b)

    def sub_size(self, a: Size, b: Size) -> Size:
        return a if _is(b, 0) else self._size("sub nsw", lambda x, y: x - y, a, b)

    def mul_size(self, a: Size, b: Size) -> Size:
        if _is(a, 0) or _is(b, 0):
            return 0
        if _is(a, 1) or _is(b, 1):
            return b if _is(a, 1) else a
        return self._size("mul nsw", lambda x, y: x * y, a, b)

    def div_size(self, a: Size, b: Size) -> Size:
        """Quotient of two non-negative sizes, rounded down."""
        return a if _is(b, 1) else self._size("udiv", divided, a, b)

    def rem_size(self, a: Size, b: Size) -> Size:
        return 0 if _is(b, 1) else self._size("urem", lambda x, y: x % y, a, b)

    def min_size(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return smallest(a, b)
        return self.intrinsic("smin", self.i64(a), self.i64(b))

    def max_size(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return largest(a, b)
        return self.intrinsic("smax", self.i64(a), self.i64(b))

    def unravelled(self, index: Size, counts: Sequence[Size]) -> list[Size]:
        """The indices along axes of these counts, outermost first, of element `index` of all."""
        found: list[Size] = []
        for count in reversed(counts[1:]):
            found.append(self.rem_size(index, count))
            index = self.div_size(index, count)
        return [index, *reversed(found)] if counts else []

    def round_down(self, a: Size, step: int) -> Size:
        """The largest multiple of `step`, a power of two, that is not above `a`."""
        return self._size("and", lambda x, _: x // step * step, a, -step)

    # -- arithmetic on values -----------------------------------------------------------------

    def binary(self, instruction: str, a: Value, b: Value) -> Value:
        assert a.type == b.type, f"{instruction} on {a.type} and {b.type}"
        return self.emit(a.type, f"{instruction} {a.type} {a.text}, {b.text}")

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("fadd" if a.type.is_float else "add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("fsub" if a.type.is_float else "sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("fmul" if a.type.is_float else "mul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.binary("fdiv" if a.type.is_float else "sdiv", a, b)

    def neg(self, a: Value) -> Value:
        if a.type.is_float:
            return self.emit(a.type, f"fneg {a.type} {a.text}")
        return self.sub(constant(a.type, 0), a)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """`a * b + c`, fused where the processor can, else multiplied and added.

        `fmuladd` rather than `fma`: without the instruction the latter is a slow library call.
        """
        return self.intrinsic("fmuladd", a, b, c)

    def intrinsic(self, name: str, *arguments: Value, returns: Type | None = None) -> Value:
        """Call `llvm.<name>` overloaded on the type of its first argument."""
        full = f"llvm.{name}.{arguments[0].type.suffix}"
        return self.call(full, list(arguments), returns or arguments[0].type)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """`predicate` is LLVM's: `olt`, `une`, ... for floats, `slt`, `eq`, ... for integers."""
        instruction = "fcmp" if a.type.is_float else "icmp"
        text = f"{instruction} {predicate} {a.type} {a.text}, {b.text}"
        return self.emit(a.type.of("i1"), text)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.emit(a.type, f"select {condition}, {a}, {b}")

    def convert(self, instruction: str, a: Value, to: Type) -> Value:
        """One of LLVM's casts: `bitcast`, `sext`, `fptosi`, ..."""
        return a if a.type == to else self.emit(to, f"{instruction} {a} to {to}")

    def bits(self, a: Value) -> Value:
        """A float's bits as integers of the same width."""
        return self.convert("bitcast", a, a.type.as_integer)

    # -- vectors ------------------------------------------------------------------------------

    def splat(self, a: Value, lanes: int) -> Value:
        """`a` in every lane. With `lanes` 0, `a` itself."""
        if not lanes:
            return a
        type_ = Type(a.type.element, lanes)
        one = self.emit(type_, f"insertelement {type_} poison, {a}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        repeated = self.emit(type_, f"shufflevector {one}, {type_} poison, {zeros}")
        self._uniform.add(repeated.text)
        return repeated

    def is_uniform(self, a: Value) -> bool:
        """Whether a vector is known to have the same number in every lane."""
        return is_literal(a) or a.text in self._uniform

    def extract(self, a: Value, lane: int) -> Value:
        return self.emit(a.type.scalar, f"extractelement {a}, i64 {lane}")

    def insert(self, a: Value, item: Value, lane: int) -> Value:
        return self.emit(a.type, f"insertelement {a}, {item}, i64 {lane}")

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """Pick lanes of `a` and `b` laid end to end; -1 for a lane nobody reads."""
        mask = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in lanes)
        type_ = Type(a.type.element, len(lanes))
        return self.emit(type_, f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{mask}>")

    # -- memory -------------------------------------------------------------------------------

    def offset(self, element: Type, pointer: Value, index: Size) -> Value:
        """The address of element `index` behind `pointer`."""
        if index == 0:
            return pointer
        return self.emit(PTR, f"getelementptr {element.scalar}, {pointer}, {self.i64(index)}")

    def load(self, type_: Type, pointer: Value, *, align: int | None = None) -> Value:
        """Unaligned unless said otherwise: a view may begin at any element."""
        align = align or max(1, type_.bits // 8)
        return self.emit(type_, f"load {type_}, {pointer}, align {align}")

    def store(self, a: Value, pointer: Value, *, align: int | None = None) -> None:
        self.statement(f"store {a}, {pointer}, align {align or max(1, a.type.bits // 8)}")

    def allocate(self, type_: Type, count: int = 1, *, align: int = 64) -> Value:
        """Stack memory, alive until the function returns. Use it in the entry block only."""
        return self.emit(PTR, f"alloca {type_}, i64 {count}, align {align}")

    def prefetch(
        self, pointer: Value, nbytes: int = 1, *, write: bool = False, locality: int = 3
    ) -> None:
        """Fetch `nbytes` from `pointer` on, a line at a time."""
        self.module.declare("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
        for byte in range(0, nbytes, LINE):
            line = self.offset(I8, pointer, byte)
            arguments = f"{line}, i32 {int(write)}, i32 {locality}, i32 1"
            self.statement(f"call void @llvm.prefetch.p0({arguments})")

    def offsets(self, element: Type, pointer: Value, at: Value) -> Value:
        """The addresses of the elements `at`, a vector of indices, behind `pointer`."""
        type_ = at.type.of("ptr")
        return self.emit(type_, f"getelementptr {element.scalar}, {pointer}, {at}")

    def _mask(self, lanes: int, mask: Value | None) -> Value:
        return mask or constant(Type("i1", lanes), 1)

    def masked_load(self, type_: Type, pointer: Value, mask: Value) -> Value:
        """Lanes outside `mask` are not touched in memory and read as zero."""
        moved = _moved(type_)
        zero = Value(moved, "zeroinitializer")
        name = f"llvm.masked.load.{moved.suffix}.p0"
        found = self.call(name, [self._aligned(pointer, moved), mask, zero], moved)
        return self._as(found, type_)

    def masked_store(self, a: Value, pointer: Value, mask: Value) -> None:
        a = self._as(a, _moved(a.type))
        name = f"llvm.masked.store.{a.type.suffix}.p0"
        self.call(name, [a, self._aligned(pointer, a.type), mask])

    def masked_gather(self, type_: Type, pointers: Value, mask: Value | None) -> Value:
        """One element a lane from its own address."""
        moved = _moved(type_)
        name = f"llvm.masked.gather.{moved.suffix}.v{type_.lanes}p0"
        mask, zero = self._mask(type_.lanes, mask), Value(moved, "zeroinitializer")
        found = self.call(name, [self._aligned(pointers, moved), mask, zero], moved)
        return self._as(found, type_)

    def masked_scatter(self, a: Value, pointers: Value, mask: Value | None) -> None:
        a = self._as(a, _moved(a.type))
        name = f"llvm.masked.scatter.{a.type.suffix}.v{a.type.lanes}p0"
        self.call(name, [a, self._aligned(pointers, a.type), self._mask(a.type.lanes, mask)])

    def _as(self, a: Value, type_: Type) -> Value:
        """The same bits as another type."""
        return a if a.type == type_ else self.convert("bitcast", a, type_)

    @staticmethod
    def _aligned(pointer: Value, of: Type) -> Value:
        """An argument that promises the alignment of one element."""
        return Value(pointer.type, f"align {max(1, of.bits // 8)} {pointer.text}")

    # -- calls --------------------------------------------------------------------------------

    def call(self, name: str, arguments: Sequence[Value], returns: Type = VOID) -> Value:
        """Call `@name`, declaring it where the module does not define it."""
        self.module.declare(name, returns, [a.type for a in arguments])
        return self._call(f"@{name}", arguments, returns)

    def call_pointer(self, entry: Value, arguments: Sequence[Value], returns: Type = VOID) -> Value:
        return self._call(entry.text, arguments, returns)

    def _call(self, callee: str, arguments: Sequence[Value], returns: Type) -> Value:
        text = f"call {returns} {callee}(" + ", ".join(str(a) for a in arguments) + ")"
        if returns == VOID:
            self.statement(text)
            return Value(VOID, "")
        return self.emit(returns, text)

    def ret(self, value: Value | None = None) -> None:
        self.statement(f"ret {value}" if value else "ret void")

    # -- control ------------------------------------------------------------------------------

    @contextmanager
    def loop(
        self, start: Size, stop: Size, step: Size = 1, carried: Sequence[Value] = ()
    ) -> Iterator[Loop]:
        """`for index in range(start, stop, step)`; `carried` values go from turn to turn.

        Inside, assign the successors to `loop.next`; afterwards read `loop.results`.
        A loop that is known to turn at least once is written without the entry check.
        """
        head, exit_, before = self._fresh("loop"), self._fresh("done"), self._block
        turns = isinstance(start, int) and isinstance(stop, int) and start < stop
        first, last = self.i64(start), self.i64(stop)
        if not turns:
            # What no turn changes is computed in a block of its own, if there is one.
            ahead = self._fresh("ahead")
            enter = self.compare("slt", first, last)
            self.statement(f"br {enter}, label %{ahead}, label %{exit_}")
            self._label(ahead)
        entry = self._block
        self.statement(f"br label %{head}")
        self._label(head)
        phis = len(self._lines)
        index = Value(I64, f"%{self._fresh('i')}")
        inside = [Value(c.type, f"%{self._fresh('c')}") for c in carried]
        state = Loop(index, inside)
        yield state
        following = self.emit(I64, f"add nsw i64 {index.text}, {self.i64(step).text}")
        more = self.compare("slt", following, last)
        latch = self._block
        self.statement(f"br {more}, label %{head}, label %{exit_}, !llvm.loop !0")
        incoming = [(index, first, following), *zip(inside, carried, state.next, strict=True)]
        self._lines[phis:phis] = [
            f"  {phi.text} = phi {phi.type} [ {a.text}, %{entry} ], [ {b.text}, %{latch} ]"
            for phi, a, b in incoming
        ]
        self._label(exit_)
        if turns:
            state.results = list(state.next)
        else:
            state.results = [
                self.emit(a.type, f"phi {a.type} [ {a.text}, %{before} ], [ {b.text}, %{latch} ]")
                for a, b in zip(carried, state.next, strict=True)
            ]

    @contextmanager
    def repeat(self, carried: Sequence[Value]) -> Iterator[Loop]:
        """Turns, one at least, for as long as the bit that the body assigns to `loop.more` is set.

        `carried`, `loop.next` and `loop.results` are as for `loop`.
        """
        head, exit_, before = self._fresh("repeat"), self._fresh("done"), self._block
        self.statement(f"br label %{head}")
        self._label(head)
        phis = len(self._lines)
        inside = [Value(c.type, f"%{self._fresh('c')}") for c in carried]
        state = Loop(constant(I64, 0), inside)
        yield state
        latch = self._block
        self.statement(f"br {state.more}, label %{head}, label %{exit_}, !llvm.loop !0")
        self._lines[phis:phis] = [
            f"  {phi.text} = phi {phi.type} [ {a.text}, %{before} ], [ {b.text}, %{latch} ]"
            for phi, a, b in zip(inside, carried, state.next, strict=True)
        ]
        self._label(exit_)
        state.results = list(state.next)

    def leave_if(self, condition: Value, leave: Callable[[], object]) -> None:
        """Run `leave`, which ends with a return, where `condition` holds."""
        out, on = self._fresh("leave"), self._fresh("stay")
        self.statement(f"br {condition}, label %{out}, label %{on}")
        self._label(out)
        leave()
        self._label(on)

    def if_else(
        self,
        condition: Value,
        then: Branch,
        otherwise: Branch = lambda: None,
        *,
        rarely: bool = False,
    ) -> list[Value]:
        """Run one of two branches; the values they return, if any, of equal types, come out merged.

        Where the first one is taken `rarely`, registers are given out for the other.
        """
        yes, no, join = self._fresh("then"), self._fresh("else"), self._fresh("join")
        weights = ", !prof !2" if rarely else ""
        self.statement(f"br {condition}, label %{yes}, label %{no}{weights}")
        outcomes = []
        for label, branch in ((yes, then), (no, otherwise)):
            self._label(label)
            values = branch() or ()
            outcomes.append((values, self._block))
            self.statement(f"br label %{join}")
        self._label(join)
        (first, from_yes), (second, from_no) = outcomes
        return [
            self.emit(a.type, f"phi {a.type} [ {a.text}, %{from_yes} ], [ {b.text}, %{from_no} ]")
            for a, b in zip(first, second, strict=True)
        ]

    def first_of(self, ways: Sequence[tuple[Value, Branch]], otherwise: Branch) -> list[Value]:
        """The same with the first of several branches whose condition holds."""
        if not ways:
            return list(otherwise() or ())
        (condition, way), *others = ways
        return self.if_else(condition, way, lambda: self.first_of(others, otherwise))


@dataclass
class Module:
    """Functions, constant tables and declarations that are compiled together."""

    functions: list[Function] = field(default_factory=list)
    target: Target | None = None  # None: a processor with rounding and fused instructions
    _declarations: dict[str, str] = field(default_factory=dict)
    _globals: dict[str, str] = field(default_factory=dict)

    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, Type]],
        returns: Type = VOID,
        **options: str,
    ) -> Function:
        made = Function(self, name, parameters, returns, **options)
        self.functions.append(made)
        return made

    def defines(self, name: str) -> bool:
        return any(function.name == name for function in self.functions)

    def declare(self, name: str, returns: Type, parameters: Sequence[Type]) -> None:
        types = ", ".join(str(p) for p in parameters)
        self._declarations[name] = f"declare {returns} @{name}({types})"

    def table(self, name: str, element: Type, numbers: Sequence[float]) -> Value:
        """A constant array; asking again for the same name gives the same table."""
        items = ", ".join(str(constant(element, n)) for n in numbers)
        self._globals[name] = (
            f"@{name} = internal constant [{len(numbers)} x {element}] [{items}], align 64"
        )
        return Value(PTR, f"@{name}")

    def pointers(self, name: str, addresses: Sequence[str]) -> Value:
        """A constant array of addresses, each written as LLVM does: `@name` or `null`."""
        items = ", ".join(f"ptr {address}" for address in addresses)
        self._globals[name] = f"@{name} = internal constant [{len(addresses)} x ptr] [{items}]"
        return Value(PTR, f"@{name}")

    def text(self) -> str:
        defined = {function.name for function in self.functions}
        declared = [text for name, text in self._declarations.items() if name not in defined]
        texts = {function.name: function.text() for function in self.functions}
        inside = {function.name for function in self.functions if function.linkage == "internal"}
        stands = stand_ins(texts, inside)
        kept = [text for name, text in texts.items() if name not in stands]
        named = [renamed(text, stands) for text in (*self._globals.values(), *declared, "", *kept)]
        # Explicit vectors are unrolled where it pays; LLVM must not do it a second time.
        notes = [
            "!0 = distinct !{!0, !1}",
            '!1 = !{!"llvm.loop.unroll.disable"}',
            '!2 = !{!"branch_weights", i32 1, i32 100000}',
            "",
        ]
        return "\n".join([*named, *notes])
