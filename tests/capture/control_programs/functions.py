"""What decides stands in other functions: closures, methods, decorators, recursion."""

import contextlib
import functools
import math
import operator
from functools import partial

from heterosis import np
from tests.capture.control_programs.table import LONG, program


def _scaled(x, *, by=2, **others):
    if x.sum() > 0:
        return x * by
    return x + others.get("shift", 0)


@program()
def keywords_are_handed_on(x):
    return _scaled(x, by=3) + _scaled(-x, shift=4, by=1)


def _any_number(*arrays, **scales):
    total = arrays[0] * 0
    for array, (name, by) in zip(arrays, scales.items(), strict=True):
        if array.sum() > len(name):  # noqa: SIM108
            total = total + array * by
        else:
            total = total - array
    return total


@program()
def any_number_of_arguments(x):
    arrays, scales = (x, x * 2, x + 1), {"a": 1.5, "bb": 2, "ccc": x.max()}
    return _any_number(*arrays, **scales)


@program()
def keywords_that_hold_arrays(x):
    def inner(**named):
        if named["first"].sum() > named["second"].sum():
            named = {**named, "first": named["first"] * 2}
        return named["first"] + named["second"]

    return inner(first=x, second=x * x)


def _of_defaults(x, limit=1.0, *, scale=3):
    while np.abs(x).max() > limit:
        x = x / scale
    return x


@program()
def defaults(x):
    return _of_defaults(x) + _of_defaults(x, 0.5, scale=2)


@program()
def closures(x):
    scale = x.max()

    def inner(y):
        if y.sum() > 0:
            return y * scale
        return y

    return inner(x) + inner(-x)


@program()
def a_closure_sees_what_is_set_later(x):
    """A lambda looks a variable up when it is called."""
    scale = x.max()
    chosen = lambda: scale * 2 if scale > 1 else scale  # noqa: E731
    scale = scale + 1
    return x * chosen()


@program()
def a_closure_over_what_a_branch_sets(x):
    scale = 1.0
    if x.sum() > 0:
        scale = x.max()

    def inner(y):
        return y * scale if y.max() > 0.5 else y + scale

    return inner(x)


@program()
def a_closure_that_sets_its_own(x):
    total = x * 0

    def add(y):
        nonlocal total
        total = total + y

    for row in x:
        add(row)
    return total if total.sum() > 0 else x


@program()
def functions_made_in_turns(x):
    """All look at the last turn's variable, but for those that keep their own."""
    late, own = [], []
    for i in range(3):
        late.append(lambda y: y * i if y.sum() > 0 else y)  # noqa: B023
        own.append(lambda y, i=i: y * i if y.sum() > 0 else y + i)
    return sum(f(x) for f in [*late, *own])


@program()
def partial_functions(x):
    return partial(_scaled, by=5)(x)


@program()
def partials_of_partials_and_methods(x):
    class Box:
        def __init__(self, limit):
            self.limit = limit

        def run(self, y, by, *, more=0):
            return y * by + more if y.sum() > self.limit else y

    first = partial(Box(0.5).run, by=3)
    return partial(first, more=1)(x) + first(-x)


@program()
def lambdas_in_a_table(x):
    ways = {"a": lambda y: y * 2 if y.sum() > 0 else y, "b": lambda y: -y if y.max() > 1 else y}
    return sum(way(x) for way in ways.values())


def _power(x, n):
    if n == 0:
        return x
    half = _power(x, n - 1)
    return half * 2 if half.sum() > 0 else half + 1


@program()
def recursion_that_numbers_bound(x):
    return _power(x, 3)


def _even(x, n):
    return x if n == 0 else _odd(x * 1.5 if x.sum() > 0 else x - 1, n - 1)


def _odd(x, n):
    return -x if n == 0 else _even(x + 1 if x.max() < 2 else x, n - 1)


@program()
def recursion_of_two(x):
    return _even(x, 3) + _odd(x, 2)


@program()
def recursion_over_halves(x):
    """Bounded by shapes, with a choice at every level."""

    def peak(y):
        if len(y) == 1:
            return y
        first, second = peak(y[: len(y) // 2]), peak(y[len(y) // 2 :])
        return first if first.sum() > second.sum() else second

    return peak(x.reshape(-1))


@program()
def recursion_in_a_branch(x):
    def down(y, depth):
        if depth > 0 and y.sum() > 0.5:
            return down(y * 0.5, depth - 1)
        return y + depth

    return down(x, 3)


class _Base:
    scale = 2

    def __init__(self, limit):
        self._limit = limit
        self.__hidden = 1

    @property
    def limit(self):
        return self._limit * self.__hidden

    def run(self, x):
        return x * self.scale if x.sum() > self.limit else x


class _Derived(_Base):
    def run(self, x):
        if x.max() > 1:
            return super().run(x) + 1
        return super(_Derived, self).run(x) - 1  # noqa: UP008 - both are tested

    @staticmethod
    def either(a, b):
        return a if a.sum() > b.sum() else b

    @classmethod
    def of(cls, x, limit):
        if x.sum() > 0:
            return cls(limit).run(x) * cls.scale
        return cls(limit + 1).run(x)

    @property
    def reversed(self):
        return lambda x: x[::-1] if x.sum() > self.limit else x

    @property
    def large(self):
        return self._limit if self._limit > 3 else self._limit * 2

    def __call__(self, x):
        return self.run(x) if x.min() < 0 else x

    def __getitem__(self, i):
        return self._limit + i


@program()
def methods_and_super(x):
    return _Derived(0.5).run(x)


@program()
def static_and_class_methods(x):
    return _Derived.either(x, -x) + _Derived.of(x, 1) + _Derived(1).either(x, x * 2)


@program()
def a_property_that_an_array_decides(x):
    return _Derived(x.sum()).large * x


@program()
def properties_and_special_methods(x):
    derived = _Derived(0.25)
    return derived.reversed(x) + derived(x) * derived[1]


def _twice(function):
    @functools.wraps(function)
    def call(x, *more, **named):
        y = function(x, *more, **named)
        return function(y, *more, **named) if y.sum() < 3 else y

    return call


def _times(n):
    def decorate(function):
        def call(x):
            for _ in range(n):
                x = function(x)
            return x

        return call

    return decorate


@_times(2)
@_twice
def _decorated(x):
    if x.sum() > 0:
        return x * 1.25
    return x + 1


@program()
def decorators(x):
    return _decorated(x)


@program()
def a_context_of_ones_own(x):
    @contextlib.contextmanager
    def scope(factor):
        yield factor * 2

    with scope(2) as factor:
        if x.sum() > 0:
            x = x * factor
    return x


class _Doubling:
    """Decides by an array what it gives."""

    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self.x * 2 if self.x.sum() > 0 else self.x

    def __exit__(self, *error):
        self.x = None


@program()
def a_context_that_an_array_decides(x):
    with _Doubling(x) as y:
        if y.max() > 1:
            return y
    return y + x


@program()
def a_generator_that_python_runs(x):
    def parts(y):
        for i in range(3):
            yield y * i

    y = sum(parts(x))
    return y + 1 if y.sum() > 0 else y


@program()
def generator_expressions_and_comprehensions(x):
    found = [row * 2 if row.sum() > 0 else row for row in x if row.ndim == 1]
    named = {i: row + 1 if row.max() > 0 else row for i, row in enumerate(x)}
    return sum(found) + sum(named[i] for i in range(2)) + sum(r if r.sum() > 0 else -r for r in x)


@program()
def a_loop_unrolled_around_a_choice(x):
    parts = [x * k if x.sum() > k else x + k for k in range(3)]
    return np.stack(parts)


@program()
def map_filter_and_reduce(x):
    doubled = list(map(lambda r: r * 2 if r.sum() > 0 else r, x))  # noqa: C417
    kept = filter(lambda n: n % 2, range(5))
    return functools.reduce(operator.add, doubled) * sum(kept)


@program()
def max_and_min(x):
    a, b = x.sum(), x.max()
    return x * max(a, b, 0.5) + min([b, a]) + max(len(x), 1)


@program()
def any_and_all(x):
    if any(row.sum() > 0 for row in x):
        return x * 2 if all([x.min() > 0, True, x.max() < 5]) else x
    return -x if any(x[0] > -1) else x * 3


@program()
def functions_of_python_on_numbers(x):
    n = math.floor(math.sqrt(len(x) * x.shape[1]))
    if x.sum() > 0:
        return x * max(n, 1) + abs(-n) + divmod(n, 2)[0]
    return x * min(n, 1)


def _raises_and_catches(x, strict):
    try:
        if strict:
            raise ValueError("strict")
        y = x * 2 if x.sum() > 0 else x
    except ValueError:
        y = x * 3 if x.sum() > 0 else x
    else:
        y = y + 1
    finally:
        y = y - 0.5
    return y


@program()
def try_and_except(x):
    return _raises_and_catches(x, strict=True) + _raises_and_catches(x, strict=False)


@program()
def an_error_from_below_is_caught(x):
    def first(items):
        return items[0] if items else {}["nothing"]

    try:
        y = first([])
    except KeyError:
        y = x
    if x.sum() > 0:
        try:
            y = y + first(())
        except KeyError:
            y = y * 2
    return y


@program(x=LONG)
def a_function_with_an_exit_in_a_scan(x):
    def chosen(row):
        if row.sum() > 1:
            return row * 2
        for n in range(3):
            if row.max() > n / 3:
                return row + n
        return -row

    total = np.zeros(3)
    for row in x:
        total = total * 0.5 + chosen(row)
    return total


@program()
def a_variable_named_as_a_function(x):
    """What a branch sets is the function's own, whatever the module has by that name."""
    partial = x * 2
    if x.sum() > 0:
        partial = partial + 1
    return partial


@program()
def starred_and_unpacked(x):
    first, *rest = x[0], x[1], x.sum(axis=0)
    if x.sum() > 0:
        first, *rest = rest[0], first, rest[1]
    (a, (b, c)) = first, rest
    return a + b * 2 + c * 3


@program(gradient=False)
def augmented_assignments(x):
    y = n = x.sum() * 0 + 1
    if x.sum() > 0:
        n += 2
        n *= y
        n -= x.max()
    y = y + n
    y += x.sum()
    return y * x
