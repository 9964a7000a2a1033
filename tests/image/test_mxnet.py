"""Small images through MXNet 1.9.1 (see mxnet_side.py) and through here."""

import random
from pathlib import Path

import numpy
import pytest

from heterosis import image, np, npx
from heterosis.ops.vision import resize as resizing

HERE = Path(__file__).parent
STORED = dict(numpy.load(HERE / "mxnet.npz"))
X, F = np.array(STORED["x"]), np.array(STORED["f"])
SOURCES = {"u": X, "f": F}
AUGMENTERS = (HERE / "augmenters.txt").read_text().splitlines()
LABEL = [[0, 0.1, 0.1, 0.6, 0.7], [1, 0.4, 0.3, 0.9, 0.9]]


def named(start):
    return [key for key in STORED if key.startswith(start)]


def check(got, key, **tolerance):
    got, expected = numpy.asarray(got), STORED[key]
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    if expected.dtype == numpy.uint8:
        tolerance = tolerance or {"rtol": 0, "atol": 0}
    numpy.testing.assert_allclose(
        got.astype(float), expected, **(tolerance or {"rtol": 1e-5, "atol": 2e-6})
    )


@pytest.mark.parametrize("key", named("resize_"))
def test_resize(key):
    _, kind, interp, width, height = key.split("_")
    check(image.imresize(SOURCES[kind], int(width), int(height), int(interp)), key)


@pytest.mark.parametrize("key", ["resize_u_1_5_4", "resize_u_2_14_11", "resize_u_3_4_3"])
def test_resize_as_an_operation(key):
    *_, interp, width, height = key.split("_")
    tables = resizing.image_taps(X.shape, "uint8", int(height), int(width), int(interp))
    check(resizing.resample(X, *(np.array(t) for pair in tables for t in pair)), key)


@pytest.mark.parametrize("name", ["brightness", "contrast", "hue"])
@pytest.mark.parametrize("factor", [0.37, 1.4])
@pytest.mark.parametrize("kind", SOURCES)
def test_colours(name, factor, kind):
    got = getattr(npx.image, f"random_{name}")(SOURCES[kind], factor, factor)
    # A colour on its way to another hue may be cut off one step below or above.
    near = {"rtol": 0, "atol": 1} if name == "hue" and kind == "u" else {}
    check(got, f"{name}_{kind}_{factor}", **near)


def test_to_what_models_take():
    check(npx.image.to_tensor(X), "to_tensor")
    tensor = np.array(STORED["to_tensor"])
    check(npx.image.normalize(tensor, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7)), "normalize")
    for kind, source in SOURCES.items():
        check(npx.image.adjust_lighting(source, (0.1, -0.2, 0.3)), f"lighting_{kind}")


def test_crops():
    check(image.resize_short(X, 4), "short")
    check(npx.image.resize(X, 4, True), "keep")
    check(image.center_crop(X, (4, 3))[0], "center")
    check(image.center_crop(X, (12, 8))[0], "center_larger")
    check(image.fixed_crop(X, 1, 2, 5, 3, (7, 8)), "fixed")


@pytest.mark.parametrize("seed", range(3))
def test_random_crops_draw_the_same_places(seed):
    random.seed(seed)
    check(image.random_crop(X, (4, 3))[0], f"crop_{seed}")
    random.seed(seed)
    check(image.random_size_crop(X, (4, 3), (0.3, 0.8), (0.75, 1.33))[0], f"sized_{seed}")


@pytest.mark.parametrize("key", named("rotate_"))
def test_rotation(key):
    _, angle, zoom = key.split("_")
    planes = F.transpose(2, 0, 1)
    check(image.imrotate(planes, float(angle), zoom[0] == "1", zoom[1] == "1"), key, atol=2e-6)


@pytest.mark.parametrize("text", AUGMENTERS)
def test_augmenters(text):
    augmenter = eval(text, {**vars(image), "numpy": numpy})
    name, pixels = type(augmenter).__name__, X.astype("float32")
    random.seed(7 if name.startswith("Det") else 5)
    numpy.random.seed(5)
    if name.startswith("Det"):
        got, label = augmenter(pixels, numpy.array(LABEL))
        check(label, f"label_{name}")
    else:
        got = augmenter(pixels)
    check(got, f"aug_{name}", rtol=1e-5, atol=1e-4)
    assert (pixels == X).all()  # and the image that was given is as it was


def test_every_augmenter_has_a_case():
    bases = {"Augmenter", "DetAugmenter"}
    names = {n for n in image.__all__ if n.endswith("Aug")} - bases
    assert names == {text.split("(")[0] for text in AUGMENTERS}


@pytest.mark.parametrize("key", named("decoded_"))
def test_files(key):
    _, flag, name = key.split("_")
    check(image.imdecode(STORED[f"file_{name}"], int(flag)), key)


def test_files_that_are_read(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(STORED["file_colour.png"].tobytes())
    check(image.imread(path), "decoded_1_colour.png")
    blue_first = image.imread(str(path), to_rgb=False).asnumpy()
    assert (blue_first[..., ::-1] == STORED["decoded_1_colour.png"]).all()
