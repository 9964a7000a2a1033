"""What `heterosis.np.linalg` hands to NumPy 2.4.6."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from typing import Any

def cross(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the cross product of 3-element vectors."""

def diagonal(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns specified diagonals of a matrix (or a stack of matrices) ``x``."""

def matmul(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Computes the matrix product."""

def matrix_norm(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Computes the matrix norm of a matrix (or a stack of matrices) ``x``."""

def matrix_transpose(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Transposes a matrix (or a stack of matrices) ``x``."""

def outer(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute the outer product of two vectors."""

def svdvals(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the singular values of a matrix (or a stack of matrices) ``x``."""

def tensordot(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Compute tensor dot product along specified axes."""

def trace(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Returns the sum along the specified diagonals of a matrix"""

def vecdot(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Computes the vector dot product."""

def vector_norm(*arguments: Any, **keywords: Any) -> Any:
    """NumPy's, on the host: Computes the vector norm of a vector (or batch of vectors) ``x``."""
