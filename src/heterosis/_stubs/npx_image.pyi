"""The operations of `heterosis.npx.image`."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from heterosis._core import ndarray
from heterosis.typing import ArrayLike

def adjust_lighting(
    data: ArrayLike,
    alpha: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The image plus `alpha` times the three directions in which natural colours vary most."""

def flip_left_right(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The image with left and right exchanged."""

def flip_top_bottom(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The image upside down."""

def normalize(
    data: ArrayLike,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`(data - mean) / std` of channels-first images; one number for all channels or each."""

def random_brightness(
    data: ArrayLike,
    min_factor: ArrayLike,
    max_factor: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The image times a random number between two factors."""

def random_contrast(
    data: ArrayLike,
    min_factor: ArrayLike,
    max_factor: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The image's distance from its mean lightness times a random number between two factors."""

def random_flip_left_right(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The image, with left and right exchanged in one of two cases."""

def random_flip_top_bottom(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The image, upside down in one of two cases."""

def random_hue(
    data: ArrayLike,
    min_factor: ArrayLike,
    max_factor: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The hue turned by a random number of full turns between two factors; whole turns do
    nothing.
    """

def random_lighting(
    data: ArrayLike,
    alpha_std: ArrayLike = 0.05,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`adjust_lighting` with normal random numbers of deviation `alpha_std`."""

def random_saturation(
    data: ArrayLike,
    min_factor: ArrayLike,
    max_factor: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Each pixel's distance from grey times a random number between two factors."""

def to_tensor(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """An image as float32 between 0 and 1, channels first."""
