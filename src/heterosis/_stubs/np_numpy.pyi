"""What `heterosis.np` hands to NumPy 2.4.6."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from typing import Any

def allclose(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns True if two arrays are element-wise equal within a tolerance."""

def angle(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the angle of the complex argument."""

def apply_along_axis(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Apply a function to 1-D slices along the given axis."""

def apply_over_axes(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Apply a function repeatedly over multiple axes."""

def argpartition(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Perform an indirect partition along the given axis using the"""

def array2string(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a string representation of an array."""

def array_equal(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: True if two arrays have the same shape and elements, False otherwise."""

def array_equiv(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns True if input arrays are shape consistent and all elements equal."""

def array_repr(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the string representation of an array."""

def array_str(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a string representation of the data in an array."""

def asanyarray(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Convert the input to an ndarray, but pass ndarray subclasses through."""

def asarray_chkfinite(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Convert the input to an array, checking for NaNs or Infs."""

def ascontiguousarray(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a contiguous array (ndim >= 1) in memory (C order)."""

def asfortranarray(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return an array (ndim >= 1) laid out in Fortran order in memory."""

def asmatrix(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Interpret the input as a matrix."""

def bartlett(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the Bartlett window."""

def base_repr(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a string representation of a number in the given base system."""

def binary_repr(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the binary representation of the input number as a string."""

def bitwise_count(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Computes the number of 1-bits in the absolute value of ``x``."""

def block(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Assemble an nd-array from nested lists of blocks."""

def bmat(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Build a matrix object from a string, nested sequence, or array."""

def broadcast_shapes(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Broadcast the input shapes into a single shape."""

def busday_count(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Counts the number of valid days between `begindates` and"""

def busday_offset(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: First adjusts the date to fall on a valid day according to"""

def can_cast(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns True if cast between data types can occur according to the"""

def choose(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Construct an array from an index array and a list of arrays to choose from."""

def common_type(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a scalar type which is common to the input arrays."""

def compress(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return selected slices of an array along given axis."""

def conj(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: conjugate(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True[, signature])"""

def conjugate(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the complex conjugate, element-wise."""

def convolve(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the discrete, linear convolution of two one-dimensional sequences."""

def copyto(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Copies values from one array to another, broadcasting as necessary."""

def corrcoef(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return Pearson product-moment correlation coefficients."""

def correlate(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Cross-correlation of two 1-dimensional sequences."""

def cov(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Estimate a covariance matrix, given data and weights."""

def cumulative_prod(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the cumulative product of elements along a given axis."""

def cumulative_sum(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the cumulative sum of the elements along a given axis."""

def datetime_as_string(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Convert an array of datetimes into an array of strings."""

def datetime_data(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Get information about the step size of a date or time type."""

def diag_indices(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices to access the main diagonal of an array."""

def digitize(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices of the bins to which each value in input array belongs."""

def einsum_path(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Evaluates the lowest cost contraction order for an einsum expression by"""

def extract(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the elements of an array that satisfy some condition."""

def fill_diagonal(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Fill the main diagonal of the given array of any dimensionality."""

def format_float_positional(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Format a floating-point scalar as a decimal string in positional notation."""

def format_float_scientific(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Format a floating-point scalar as a decimal string in scientific notation."""

def frombuffer(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Interpret a buffer as a 1-dimensional array."""

def fromfile(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Construct an array from data in a text or binary file."""

def fromfunction(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Construct an array by executing a function over each coordinate."""

def fromiter(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Create a new 1-dimensional array from an iterable object."""

def frompyfunc(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Takes an arbitrary Python function and returns a NumPy ufunc."""

def fromregex(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Construct an array from a text file, using regular expression parsing."""

def fromstring(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: A new 1-D array initialized from text data in a string."""

def geomspace(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return numbers spaced evenly on a log scale (a geometric progression)."""

def get_include(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the directory that contains the NumPy \\*.h header files."""

def getbufsize(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the size of the buffer used in ufuncs."""

def geterr(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Get the current way of handling floating-point errors."""

def geterrcall(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the current callback function used on floating-point errors."""

def gradient(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the gradient of an N-dimensional array."""

def histogram2d(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the bi-dimensional histogram of two data samples."""

def histogram_bin_edges(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Function to calculate only the edges of the bins used by the `histogram`"""

def histogramdd(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the multidimensional histogram of some data."""

def i0(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Modified Bessel function of the first kind, order 0."""

def imag(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the imaginary part of the complex argument."""

def info(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Get help information for an array, function, class, or module."""

def interp(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: One-dimensional linear interpolation for monotonically increasing sample points."""

def intersect1d(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the intersection of two arrays."""

def is_busday(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Calculates which of the given dates are valid days, and which are not."""

def isclose(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns a boolean array where two arrays are element-wise equal within a"""

def iscomplex(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns a bool array, where True if input element is complex."""

def iscomplexobj(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Check for a complex type or an array of complex numbers."""

def isdtype(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Determine if a provided dtype is of a specified data type ``kind``."""

def isfortran(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Check if the array is Fortran contiguous but *not* C contiguous."""

def isin(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Calculates ``element in test_elements``, broadcasting over `element` only."""

def isnat(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Test element-wise for NaT (not a time) and return result as a boolean array."""

def isreal(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns a bool array, where True if input element is real."""

def isrealobj(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return True if x is a not complex type or an array of complex numbers."""

def isscalar(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns True if the type of `element` is a scalar type."""

def issubdtype(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns True if first argument is a typecode lower/equal in type hierarchy."""

def iterable(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Check whether or not an object can be iterated over."""

def ix_(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Construct an open mesh from multiple sequences."""

def kaiser(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the Kaiser window."""

def lexsort(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Perform an indirect stable sort using a sequence of keys."""

def load(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Load arrays or pickled objects from ``.npy``, ``.npz`` or pickled files."""

def loadtxt(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Load data from a text file."""

def logaddexp2(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Logarithm of the sum of exponentiations of the inputs in base-2."""

def mask_indices(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices to access (n, n) arrays, given a masking function."""

def matrix_transpose(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Transposes a matrix (or a stack of matrices) ``x``."""

def matvec(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Matrix-vector dot product of two arrays."""

def min_scalar_type(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: For scalar ``a``, returns the data type with the smallest size"""

def mintypecode(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the character for the minimum-size type to which given types can"""

def nanargmax(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices of the maximum values in the specified axis ignoring"""

def nanargmin(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices of the minimum values in the specified axis ignoring"""

def nancumprod(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the cumulative product of array elements over a given axis treating Not a"""

def nancumsum(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the cumulative sum of array elements over a given axis treating Not a"""

def nanmax(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the maximum of an array or maximum along an axis, ignoring any"""

def nanmean(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the arithmetic mean along the specified axis, ignoring NaNs."""

def nanmedian(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the median along the specified axis, while ignoring NaNs."""

def nanmin(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return minimum of an array or minimum along an axis, ignoring any NaNs."""

def nanpercentile(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the qth percentile of the data along the specified axis,"""

def nanquantile(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the qth quantile of the data along the specified axis,"""

def nanstd(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the standard deviation along the specified axis, while"""

def nanvar(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the variance along the specified axis, while ignoring NaNs."""

def nested_iters(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Create nditers for use in nested loops"""

def nextafter(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the next floating-point value after x1 towards x2, element-wise."""

def packbits(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Packs the elements of a binary-valued array into bits in a uint8 array."""

def partition(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a partitioned copy of an array."""

def piecewise(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Evaluate a piecewise-defined function."""

def place(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Change elements of an array based on conditional and input values."""

def poly(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the coefficients of a polynomial with the given sequence of roots."""

def polyadd(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the sum of two polynomials."""

def polyder(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the derivative of the specified order of a polynomial."""

def polydiv(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the quotient and remainder of polynomial division."""

def polyfit(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Least squares polynomial fit."""

def polyint(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return an antiderivative (indefinite integral) of a polynomial."""

def polymul(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the product of two polynomials."""

def polysub(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Difference (subtraction) of two polynomials."""

def promote_types(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the data type with the smallest size and smallest scalar"""

def put(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Replaces specified elements of an array with given values."""

def put_along_axis(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Put values into the destination array by matching 1d index and data slices."""

def putmask(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Changes elements of an array based on conditional and input values."""

def real(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the real part of the complex argument."""

def real_if_close(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: If input is complex with all imaginary parts close to zero, return"""

def require(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return an ndarray of the provided type that satisfies requirements."""

def result_type(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the type that results from applying the NumPy"""

def roots(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the roots of a polynomial with coefficients given in p."""

def save(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Save an array to a binary file in NumPy ``.npy`` format."""

def savetxt(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Save an array to a text file."""

def savez(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Save several arrays into a single file in uncompressed ``.npz`` format."""

def savez_compressed(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Save several arrays into a single file in compressed ``.npz`` format."""

def select(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return an array drawn from elements in choicelist, depending on conditions."""

def setbufsize(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Set the size of the buffer used in ufuncs."""

def setdiff1d(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the set difference of two arrays."""

def seterr(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Set how floating-point errors are handled."""

def seterrcall(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Set the floating-point error callback function or log object."""

def setxor1d(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the set exclusive-or of two arrays."""

def show_config(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Show libraries and system information on which NumPy was built"""

def show_runtime(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Print information about various resources in the system"""

def sinc(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the normalized sinc function."""

def sort_complex(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Sort a complex array using the real part first, then the imaginary part."""

def test(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Pytest test runner."""

def trapezoid(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Integrate along the given axis using the composite trapezoidal rule."""

def tril_indices(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices for the lower-triangle of an (n, m) array."""

def tril_indices_from(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices for the lower-triangle of arr."""

def trim_zeros(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Remove values along a dimension which are zero along all other."""

def triu_indices(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices for the upper-triangle of an (n, m) array."""

def triu_indices_from(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return the indices for the upper-triangle of arr."""

def typename(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Return a description for the given data type code."""

def union1d(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the union of two arrays."""

def unique_all(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the unique elements of an array, and counts, inverse, and indices."""

def unique_counts(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the unique elements and counts of an input array `x`."""

def unique_inverse(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Find the unique elements of `x` and indices to reconstruct `x`."""

def unique_values(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the unique elements of an input array `x`."""

def unpackbits(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Unpacks elements of a uint8 array into a binary-valued output array."""

def unstack(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Split an array into a sequence of arrays along the given axis."""

def unwrap(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Unwrap by taking the complement of large deltas with respect to the period."""

def vander(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Generate a Vandermonde matrix."""

def vecdot(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Vector dot product of two arrays."""

def vecmat(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Vector-matrix dot product of two arrays."""
