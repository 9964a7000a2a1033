"""The methods of arrays."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from collections.abc import Callable, Iterator, Sequence
from heterosis._core import ndarray
from heterosis.runtime.context import Context
from heterosis.typing import ArrayLike, DTypeLike
from numpy import ufunc
from numpy.typing import NDArray
from typing import Any

class ArrayMethods:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """`numpy.asarray(x)`: shares the memory unless `dtype` or `copy` asks for another."""

    def __array_function__(
        self,
        function: Callable,
        types: Sequence[type],
        arguments: tuple,
        keywords: dict,
    ) -> Any:
        """`numpy.mean(x)`: the function of that name here, if it takes these arguments."""

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The array API standard's functions, as programs for any array library ask for them."""

    def __array_ufunc__(self, ufunc: ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """`numpy.add(x, y)` and `numpy_array + x`."""

    def __ceil__(self) -> Any: ...

    def __complex__(self) -> complex:
        """`complex(x)`: of an array with one element."""

    def __contains__(self, element: Any) -> bool:
        """`element in x`: whether an element equals it."""

    def __copy__(self, order: str = "C") -> ndarray:
        """A new array with the same elements."""

    def __deepcopy__(self, memo: Any) -> Any: ...

    def __dir__(self) -> list[str]:
        """What `dir(x)` shows: these names only where an object has them."""

    def __divmod__(self, other: Any) -> tuple[ndarray, ndarray]:
        """`divmod(x, y)`."""

    def __floor__(self) -> Any: ...

    def __format__(self, specification: str) -> str:
        """`format(x, '.2f')`: an array without dimensions is formatted as its number."""

    def __imatmul__(self, other: Any) -> Any:
        """`x @= y`: the array holds the product, which is of its shape."""

    def __rdivmod__(self, other: Any) -> Any: ...

    def __reduce__(self) -> tuple:
        """What pickling and copying keep: the elements as a NumPy array."""

    def __reversed__(self) -> Iterator[ndarray]:
        """`reversed(x)`: the rows, each as it is when it is asked for."""

    def __round__(self, digits: Any = 0) -> Any: ...

    def __trunc__(self) -> Any: ...

    def abs(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The distance from zero."""

    def absolute(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The distance from zero."""

    def acos(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The angle whose cosine is `x`."""

    def acosh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The inverse of `cosh`."""

    def all(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """Whether all elements along `axis` are true."""

    def amax(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The largest element along `axis`; NaN if any is."""

    def amin(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The smallest element along `axis`; NaN if any is."""

    def any(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """Whether an element along `axis` is true."""

    def arccos(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The angle whose cosine is `x`."""

    def arccosh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The inverse of `cosh`."""

    def arcsin(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The angle whose sine is `x`."""

    def arcsinh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The inverse of `sinh`."""

    def arctan(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The angle whose tangent is `x`."""

    def arctanh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The inverse of `tanh`."""

    def argmax(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The position of the first largest element along `axis`; of the first NaN if there is one."""

    def argmax_channel(self, *, out: ndarray | None = None) -> ndarray:
        """The index of the largest element along axis 1, as float32."""

    def argmin(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The position of the first smallest element along `axis`; of the first NaN if there is one."""

    def argsort(
        self,
        axis: int | None = -1,
        kind: str | None = None,
        order: str | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The places of elements in ascending order along `axis`; equal ones keep their order."""

    def around(self, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
        """The nearest number with `decimals` digits behind the point; the even one of two."""

    def as_in_context(self, context: Context) -> ndarray:
        """The array itself if it is on that context, else a copy there."""

    def as_in_ctx(self, context: Context) -> ndarray:
        """The array itself if it is on that context, else a copy there."""

    def as_nd_ndarray(self) -> ndarray:
        """The array itself: there is one kind of array."""

    def as_np_ndarray(self) -> ndarray:
        """The array itself: there is one kind of array."""

    def asin(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The angle whose sine is `x`."""

    def asinh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The inverse of `sinh`."""

    def asnumpy(self) -> NDArray[Any]:
        """A NumPy array with a copy of the elements; waits until they are computed."""

    def asscalar(self, *index: Any) -> Any:
        """One element as a Python number; waits until it is computed."""

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: Any = True,
        copy: Any = True,
    ) -> ndarray:
        """The elements converted to `dtype`; the array itself if nothing changes and not `copy`."""

    def atan(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The angle whose tangent is `x`."""

    def atanh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The inverse of `tanh`."""

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make the array a variable: `backward` leaves its gradient in `.grad`, written, or added to
        what is there (`grad_req='add'`).
        """

    def backward(
        self,
        out_grad: Any = None,
        retain_graph: bool = False,
        train_mode: bool = True,
    ) -> None:
        """Gradients of the array's sum, or of its product with `out_grad`, for all variables."""

    def broadcast_axes(
        self,
        axis: int | Sequence[int] = (),
        size: int | Sequence[int] = (),
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """`data` repeated `size` times along axes of extent 1."""

    def broadcast_like(
        self,
        rhs: ArrayLike,
        lhs_axes: int | Sequence[int] | None = None,
        rhs_axes: int | Sequence[int] | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """`lhs` repeated to the shape of `rhs`, along all axes or along those that are named."""

    def broadcast_to(self, shape: Any, *, out: ndarray | None = None) -> ndarray:
        """A new array that repeats `array` along extents of 1 and new dimensions in front."""

    def cbrt(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The cube root."""

    def ceil(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The least integer not below `x`."""

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **bounds: Any) -> ndarray:
        """The elements, kept between `min` and `max`."""

    @property
    def context(self) -> Context:
        """The context that the array is on."""

    def copy(self, order: str = "C") -> ndarray:
        """A new array with the same elements."""

    def copyto(self, other: Any) -> ndarray:
        """Write the elements into the array `other`, or into a new array on the context `other`."""

    def cos(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The cosine of an angle in radians."""

    def cosh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The hyperbolic cosine."""

    @property
    def ctx(self) -> Context:
        """The context that the array is on."""

    def cumprod(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The product of all elements so far along `axis`."""

    def cumsum(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The sum of all elements so far along `axis`; of the flattened array, without one."""

    def deg2rad(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """An angle in degrees, in radians."""

    def degrees(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """An angle in radians, in degrees."""

    def depth_to_space(self, block_size: int, *, out: ndarray | None = None) -> ndarray:
        """Channels moved into blocks of pixels."""

    def detach(self) -> ndarray:
        """The same memory as an array that no gradient flows through."""

    @property
    def device(self) -> Context:
        """The context that the array is on."""

    def diag(self, k: int = 0, *, out: ndarray | None = None) -> ndarray:
        """The `k`-th diagonal of a matrix, or a matrix with `v` on its `k`-th diagonal."""

    def diagonal(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The elements whose indices along two axes are `offset` apart, as the last dimension."""

    def dot(self, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
        """The matrix product; for more dimensions, the sum over the last of `a` and the last but one of
        `b`. With a single number, the product.
        """

    def exp(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """e to the power `x`."""

    def exp2(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """2 to the power `x`."""

    def expand_dims(
        self,
        axis: int | Sequence[int] | None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """A new dimension of extent 1 at `axis`."""

    def expm1(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """`exp(x) - 1`, accurate for small `x`."""

    def fix(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The integer part."""

    def flatten(self, order: str = "C") -> ndarray:
        """A copy with one dimension."""

    def flip(
        self,
        axis: int | Sequence[int] | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The elements from last to first along `axis`."""

    def floor(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The greatest integer not above `x`."""

    @property
    def grad(self) -> Any:
        """The gradient that `backward` has left; None for an array that is no variable."""

    def item(self, *index: Any) -> Any:
        """One element as a Python number; waits until it is computed."""

    def log(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The natural logarithm."""

    def log10(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The logarithm to base 10."""

    def log1p(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """`log(1 + x)`, accurate for small `x`."""

    def log2(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The logarithm to base 2."""

    def log_softmax(
        self,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DTypeLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The logarithm of `softmax`, without overflow."""

    @property
    def mT(self) -> ndarray:
        """The last two dimensions swapped."""

    def max(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The largest element along `axis`; NaN if any is."""

    def mean(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The arithmetic mean along `axis`."""

    def min(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The smallest element along `axis`; NaN if any is."""

    def nanprod(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The product of elements that are not NaN."""

    def nansum(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The sum of elements that are not NaN."""

    def nonzero(self) -> tuple[ndarray, ...]:
        """The places of the elements that are not zero, one array of indices a dimension. Waits for
        `a`, since their number depends on it.
        """

    def norm(
        self,
        ord: int | float | str | None = None,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The size of vectors or matrices.

        Without `ord` and `axis`, the root of the sum of all squares. An `axis` means vectors along it:
        the root of squares, or `ord` = 0 (how many are not 0), 1, 2, inf, -inf or any power. Two axes,
        or a matrix without `axis`, mean matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.
        """

    def one_hot(
        self,
        depth: int,
        on_value: ArrayLike = 1.0,
        off_value: ArrayLike = 0.0,
        dtype: DTypeLike = "float32",
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """A new last dimension of `depth`: `on_value` at each index, `off_value` elsewhere."""

    def ones_like(
        self,
        dtype: DTypeLike | None = None,
        order: str = "C",
        ctx: Context | None = None,
        shape: int | Sequence[int] | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """Ones with the shape and element type of `a`."""

    def pad(
        self,
        pad_width: Any,
        mode: str = "constant",
        constant_values: Any = 0,
        end_values: Any = 0,
        reflect_type: str = "even",
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """More elements before and behind along every dimension, made as `mode` says: constant, edge,
        reflect, symmetric, wrap, maximum, minimum, mean or linear_ramp.
        """

    def pick(
        self,
        index: ArrayLike,
        axis: int = -1,
        keepdims: bool = False,
        mode: str = "clip",
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """One element for each position off `axis`: the one that `index` names along it."""

    def prod(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The product of elements along `axis`."""

    def product(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The product of elements along `axis`."""

    def ptp(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The distance from the smallest to the largest element."""

    def rad2deg(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """An angle in radians, in degrees."""

    def radians(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """An angle in degrees, in radians."""

    def ravel(self, order: str = "C", *, out: ndarray | None = None) -> ndarray:
        """All elements in one dimension; a copy only where they do not stand in that order."""

    def rcbrt(self, *, out: ndarray | None = None) -> ndarray:
        """`1 / cbrt(x)`."""

    def reciprocal(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """`1 / x`."""

    def relu(self, *, out: ndarray | None = None) -> ndarray:
        """`x` where it is positive, else 0."""

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        """Each element `repeats` times in a row; `repeats` may be one number for each."""

    def reshape(self, *shape: Any, order: str = "C", **keywords: Any) -> ndarray:
        """The same elements under another shape, given as one tuple or as several numbers.

        Where NumPy sees an error, in a 0 for an array with elements or in -2 to -4, these are the codes
        of `reshape_view`, as in programs for MXNet's older arrays.
        """

    def reshape_like(
        self,
        rhs: ArrayLike,
        lhs_begin: int | None = None,
        lhs_end: int | None = None,
        rhs_begin: int | None = None,
        rhs_end: int | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """`lhs` in the shape of `rhs`; with bounds, its dimensions from `lhs_begin` up to `lhs_end`
        replaced by those of `rhs` from `rhs_begin` up to `rhs_end`.
        """

    def reshape_view(self, *shape: Any, **keywords: Any) -> ndarray:
        """A reshape with codes: 0 keeps an extent, -1 is inferred, -2 keeps all that follow, -3
        multiplies two, -4 splits one into the next two numbers.
        """

    def resize(self, new_shape: Any, *, out: ndarray | None = None) -> ndarray:
        """The elements in their order, over and over again, under another shape."""

    def rint(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The nearest integer; the even one of two."""

    def round(self, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
        """The nearest number with `decimals` digits behind the point; the even one of two."""

    def round_(self, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
        """The nearest number with `decimals` digits behind the point; the even one of two."""

    def rsqrt(self, *, out: ndarray | None = None) -> ndarray:
        """`1 / sqrt(x)`."""

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """Where to insert each of the numbers `v` into `a`, whose elements do not decrease, so that
        they still do not: before equal ones, or with `side="right"` behind them.

        With a `sorter`, indices that put `a` into such an order, it waits for the arguments.
        """

    def shape_array(self, *, out: ndarray | None = None) -> ndarray:
        """The shape, as an array of int64."""

    def sigmoid(self, *, out: ndarray | None = None) -> ndarray:
        """`1 / (1 + exp(-x))`."""

    def sign(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """-1, 0 or 1."""

    def sin(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The sine of an angle in radians."""

    def sinh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The hyperbolic sine."""

    def size_array(self, *, out: ndarray | None = None) -> ndarray:
        """The number of elements, as an array of one int64."""

    def slice(
        self,
        begin: tuple[Any, ...],
        end: tuple[Any, ...],
        step: tuple[Any, ...] | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""

    def slice_assign(self, rhs: Any, begin: tuple, end: tuple, step: tuple) -> ndarray:
        """Write `rhs` into a slice, in place."""

    def slice_assign_scalar(self, rhs: Any, begin: tuple, end: tuple, step: tuple) -> ndarray:
        """Write `rhs` into a slice, in place."""

    def slice_axis(
        self,
        axis: int,
        begin: int,
        end: int | None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The elements from `begin` to `end` along one axis."""

    def slice_like(
        self,
        shape_like: ArrayLike,
        axes: int | Sequence[int] = (),
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The first elements along `axes` (all of them by default), as many as `shape_like` has."""

    def softmax(
        self,
        length: ArrayLike | None = None,
        axis: int = -1,
        temperature: float | None = None,
        use_length: bool = False,
        dtype: DTypeLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """`exp(data)` scaled to a sum of 1 along `axis`.

        With `use_length`, just the first `length` elements count, and the others become 0.
        """

    def softmin(
        self,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DTypeLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """`softmax` of the negative."""

    def sometrue(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """Whether an element along `axis` is true."""

    def sort(self, axis: int = -1, kind: str | None = None, order: Any = None) -> None:
        """Sort the elements in place."""

    def space_to_depth(self, block_size: int, *, out: ndarray | None = None) -> ndarray:
        """Blocks of pixels moved into channels."""

    def split(self, indices_or_sections: Any, axis: int = 0) -> list[Any]:
        """Equal parts, or the parts between the given places, along `axis`: views."""

    def split_v2(
        self,
        indices_or_sections: Any,
        axis: int = 0,
        squeeze_axis: bool = False,
    ) -> list:
        """The parts between indices, or equal parts, along `axis`; without it if `squeeze_axis`."""

    def sqrt(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The square root."""

    def square(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """`x * x`."""

    def squeeze(
        self,
        axis: int | Sequence[int] | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """Without the dimensions of extent 1, or without those that `axis` names."""

    def std(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The standard deviation: the square root of the variance."""

    @property
    def stype(self) -> Any: ...

    def sum(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The sum of elements along `axis`; of all, without one."""

    def swapaxes(self, axis1: int, axis2: int, *, out: ndarray | None = None) -> ndarray:
        """Two dimensions exchanged."""

    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        mode: str = "raise",
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The elements, or the rows along `axis`, at `indices`. `mode` says what becomes of an index
        outside: 'raise', 'clip' to the nearest end, or 'wrap' around.
        """

    def tan(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The tangent of an angle in radians."""

    def tanh(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The hyperbolic tangent."""

    def tile(self, reps: Any, *, out: ndarray | None = None) -> ndarray:
        """The whole array, repeated `reps` times along each dimension."""

    def to_device(self, device: Context, *, stream: Any = None) -> ndarray:
        """The array itself if it is on that context, else a copy there; there are no streams."""

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule to read from."""

    def to_dlpack_for_write(self) -> Any:
        """A DLPack capsule to write to; waits until all queued work has read the array."""

    def tolist(self) -> Any:
        """Nested lists of Python numbers; waits until they are computed."""

    def topk(
        self,
        axis: int | None = -1,
        k: int = 1,
        ret_typ: str = "indices",
        is_ascend: bool = False,
        dtype: DTypeLike = "float32",
    ) -> Any:
        """The `k` largest (or smallest) elements along `axis`, in order; all of them if `k` is 0.

        `ret_typ` says what is returned: their "indices", as `dtype`; their "value"; "both", values
        first; or a "mask", 1 where they stand and 0 elsewhere.
        """

    def tostype(self, stype: str) -> ndarray:
        """The array itself; only dense storage, 'default', exists."""

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The sum along a diagonal."""

    def transpose(self, *axes: Any) -> ndarray:
        """The dimensions in another order, reversed unless told; given as a tuple or as numbers."""

    def trunc(
        self,
        *,
        out: ndarray | None = None,
        where: ArrayLike = True,
        dtype: DTypeLike | None = None,
    ) -> ndarray:
        """The integer part."""

    def var(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """The mean squared distance from the mean; `ddof` is subtracted from the number of elements."""

    @property
    def writable(self) -> Any: ...

    def zeros_like(
        self,
        dtype: DTypeLike | None = None,
        order: str = "C",
        ctx: Context | None = None,
        shape: int | Sequence[int] | None = None,
        *,
        out: ndarray | None = None,
    ) -> ndarray:
        """Zeros with the shape and element type of `a`."""
