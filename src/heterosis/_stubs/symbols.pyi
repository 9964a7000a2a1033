"""The methods of symbols."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from heterosis.mxnet.symbols.symbol import Symbol
from typing import Any

class SymbolMethods:
    def __abs__(self) -> Symbol: ...

    def __add__(self, other: Any) -> Symbol: ...

    def __eq__(self, other: Any) -> Symbol: ...  # type: ignore[override]

    def __ge__(self, other: Any) -> Symbol: ...

    def __gt__(self, other: Any) -> Symbol: ...

    def __le__(self, other: Any) -> Symbol: ...

    def __lt__(self, other: Any) -> Symbol: ...

    def __mod__(self, other: Any) -> Symbol: ...

    def __mul__(self, other: Any) -> Symbol: ...

    def __ne__(self, other: Any) -> Symbol: ...  # type: ignore[override]

    def __neg__(self) -> Symbol: ...

    def __pow__(self, other: Any) -> Symbol: ...

    def __radd__(self, other: Any) -> Symbol: ...

    def __rmod__(self, other: Any) -> Symbol: ...

    def __rmul__(self, other: Any) -> Symbol: ...

    def __rpow__(self, other: Any) -> Symbol: ...

    def __rsub__(self, other: Any) -> Symbol: ...

    def __rtruediv__(self, other: Any) -> Symbol: ...

    def __sub__(self, other: Any) -> Symbol: ...

    def __truediv__(self, other: Any) -> Symbol: ...

    def abs(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator abs on this symbol."""

    def arccos(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator arccos on this symbol."""

    def arccosh(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator arccosh on this symbol."""

    def arcsin(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator arcsin on this symbol."""

    def arcsinh(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator arcsinh on this symbol."""

    def arctan(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator arctan on this symbol."""

    def arctanh(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator arctanh on this symbol."""

    def argmax(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator argmax on this symbol."""

    def argmax_channel(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator argmax_channel on this symbol."""

    def argmin(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator argmin on this symbol."""

    def argsort(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator argsort on this symbol."""

    def as_in_context(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: a symbol has no values; bind or eval gives some."""

    def asnumpy(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: a symbol has no values; bind or eval gives some."""

    def asscalar(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: a symbol has no values; bind or eval gives some."""

    def astype(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator Cast on this symbol."""

    def backward(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: a symbol has no values; bind or eval gives some."""

    def broadcast_axes(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator broadcast_axes on this symbol."""

    def broadcast_like(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator broadcast_like on this symbol."""

    def broadcast_to(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator broadcast_to on this symbol."""

    def cbrt(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator cbrt on this symbol."""

    def ceil(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator ceil on this symbol."""

    def clip(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator clip on this symbol."""

    def copy(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator identity on this symbol."""

    def cos(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator cos on this symbol."""

    def cosh(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator cosh on this symbol."""

    def degrees(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator degrees on this symbol."""

    def depth_to_space(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator depth_to_space on this symbol."""

    def detach(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: a symbol has no values; bind or eval gives some."""

    def diag(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator diag on this symbol."""

    def exp(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator exp on this symbol."""

    def expand_dims(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator expand_dims on this symbol."""

    def expm1(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator expm1 on this symbol."""

    def fix(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator fix on this symbol."""

    def flatten(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator flatten on this symbol."""

    def flip(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator flip on this symbol."""

    def floor(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator floor on this symbol."""

    def get_backend_symbol(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The symbol itself: it is compiled as a whole when it runs."""

    def gradient(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: bind the symbol with args_grad, and call forward(is_train=True) and backward."""

    def log(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator log on this symbol."""

    def log10(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator log10 on this symbol."""

    def log1p(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator log1p on this symbol."""

    def log2(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator log2 on this symbol."""

    def log_softmax(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator log_softmax on this symbol."""

    def max(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator max on this symbol."""

    def mean(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator mean on this symbol."""

    def min(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator min on this symbol."""

    def nanprod(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator nanprod on this symbol."""

    def nansum(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator nansum on this symbol."""

    def norm(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator norm on this symbol."""

    def one_hot(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator one_hot on this symbol."""

    def ones_like(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator ones_like on this symbol."""

    def optimize_for(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The symbol itself: it is compiled as a whole when it runs."""

    def pad(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator pad on this symbol."""

    def pick(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator pick on this symbol."""

    def prod(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator prod on this symbol."""

    def radians(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator radians on this symbol."""

    def rcbrt(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator rcbrt on this symbol."""

    def reciprocal(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator reciprocal on this symbol."""

    def relu(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator relu on this symbol."""

    def repeat(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator repeat on this symbol."""

    def reshape(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator reshape on this symbol."""

    def reshape_like(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator reshape_like on this symbol."""

    def rint(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator rint on this symbol."""

    def round(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator round on this symbol."""

    def rsqrt(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator rsqrt on this symbol."""

    def shape_array(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator shape_array on this symbol."""

    def sigmoid(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sigmoid on this symbol."""

    def sign(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sign on this symbol."""

    def sin(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sin on this symbol."""

    def sinh(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sinh on this symbol."""

    def size_array(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator size_array on this symbol."""

    def slice(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator slice on this symbol."""

    def slice_axis(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator slice_axis on this symbol."""

    def slice_like(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator slice_like on this symbol."""

    def softmax(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator softmax on this symbol."""

    def softmin(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator softmin on this symbol."""

    def sort(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sort on this symbol."""

    def space_to_depth(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator space_to_depth on this symbol."""

    def split(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator split on this symbol."""

    def split_v2(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator split_v2 on this symbol."""

    def sqrt(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sqrt on this symbol."""

    def square(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator square on this symbol."""

    def squeeze(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator squeeze on this symbol."""

    def sum(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator sum on this symbol."""

    def swapaxes(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator swapaxes on this symbol."""

    def take(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator take on this symbol."""

    def tan(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator tan on this symbol."""

    def tanh(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator tanh on this symbol."""

    def tile(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator tile on this symbol."""

    def topk(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator topk on this symbol."""

    def transpose(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator transpose on this symbol."""

    def trunc(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator trunc on this symbol."""

    def wait_to_read(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Raises: a symbol has no values; bind or eval gives some."""

    def zeros_like(self, *arguments: Any, **keywords: Any) -> Symbol:
        """The operator zeros_like on this symbol."""
