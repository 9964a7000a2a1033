"""JAX is among what tests need (`heterosis[test]`); who left it out tests without it."""

import pytest

pytest.importorskip("jax", reason="JAX is not installed: pip install 'heterosis[xla]'")
