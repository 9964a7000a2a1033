"""How far results may be off, on every processor: tests hold the functions to it."""

# Units of the last place of the exact value, for float32 and float64. `gammaln` has zeros left of
# 0, next to which less is exact: float32's bound is theirs, float64's holds right of 0. The bound
# of `arctan2` for float32 is that of results below the normal numbers; of others it is 1.1.
ULPS: dict[str, tuple[float, float]] = {
    "exp": (1.0, 1.0),
    "exp2": (1.1, 1.0),
    "expm1": (1.2, 1.2),
    "log": (1.0, 1.0),
    "log2": (1.2, 1.2),
    "log10": (1.3, 1.1),
    "log1p": (1.1, 1.0),
    "power": (0.8, 1.0),
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
    "cbrt": (0.6, 0.6),
    "hypot": (0.6, 0.6),
    "sigmoid": (1.0, 1.0),
    "tanh": (1.0, 1.4),
    "sinh": (1.1, 0.9),
    "cosh": (1.0, 0.8),
    "arcsinh": (1.1, 1.0),
    "arccosh": (1.1, 1.0),
    "arctanh": (1.1, 1.1),
    "sin": (0.9, 0.9),
    "cos": (0.9, 0.9),
    "tan": (1.3, 1.1),
    "arcsin": (0.8, 0.8),
    "arccos": (0.8, 0.8),
    "arctan": (1.1, 0.9),
    "arctan2": (1.4, 1.0),
    "erf": (1.4, 1.3),
    "erfc": (5.0, 5.0),
    "erfinv": (3.0, 3.0),
    "gamma": (0.6, 2.2),
    "gammaln": (4.0, 2.2),
}
