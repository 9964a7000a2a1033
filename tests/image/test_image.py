"""What images make of wrong arguments, of batches, and of chance."""

import random
import sys

import numpy
import pytest

from heterosis import image, np, npx
from heterosis.image import codec
from heterosis.runtime.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    MissingPackageError,
    ShapeError,
)
from tests.image.test_mxnet import STORED, F, X

BATCH = np.stack([X, 255 - X])


@pytest.mark.parametrize(
    "encoded, message",
    [
        (b"", "no bytes"),
        (b"no image at all", "known format"),
        (STORED["file_colour.jpg"].tobytes()[:400], "imdecode: .*expected an image"),
        (STORED["file_colour.png"].tobytes()[:100], "imdecode: .*expected an image"),
    ],
)
def test_what_is_no_image(encoded, message):
    with pytest.raises(FormatError, match=message):
        image.imdecode(encoded)


def test_wrong_arguments():
    with pytest.raises(FileNotFoundError, match="no file '/nowhere'"):
        image.imread("/nowhere")
    with pytest.raises(ArgumentError, match="flag=7"):
        image.imdecode(b"abc", 7)
    with pytest.raises(TypeError, match="imread"):
        image.imdecode("a.png")
    with pytest.raises(ArgumentError, match="0 x 3"):
        image.imresize(X, 0, 3)
    with pytest.raises(ArgumentError, match="interp=5"):
        image.imresize(X, 2, 3, 5)
    with pytest.raises(ShapeError, match=r"\(6, 9\)"):
        image.imresize(X[..., 0], 2, 3)
    with pytest.raises(ArgumentError, match="9 x 6"):
        npx.image.crop(X, 5, 0, 5, 2)
    with pytest.raises(DTypeError, match="uint8"):
        image.imrotate(X, 30)
    with pytest.raises(DTypeError, match="to_tensor"):
        npx.image.normalize(X)
    with pytest.raises(ShapeError, match="2 numbers"):
        npx.image.normalize(npx.image.to_tensor(X), (0.1, 0.2))
    with pytest.raises(ShapeError, match="1 or 3 channels"):
        npx.image.random_contrast(np.zeros((4, 4, 2)), 1, 1)


def test_pillow_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'heterosis\[image\]'"):
        image.imdecode(b"abc")


@pytest.mark.parametrize("extension, exact", [(".png", True), (".bmp", True), (".jpg", False)])
@pytest.mark.parametrize("channels", [1, 3])
def test_encoded_and_decoded(extension, exact, channels):
    smooth = numpy.linspace(0, 255, 32 * 24 * channels).reshape(24, 32, channels).astype("uint8")
    back = codec.decode(codec.encode(smooth, extension), codec.UNCHANGED)
    assert back.shape == smooth.shape
    assert numpy.abs(back.astype(int) - smooth).max() <= (0 if exact else 12)


def test_encoding_refuses():
    with pytest.raises(ArgumentError, match=r".gif"):
        codec.encode(numpy.zeros((2, 2), "uint8"), ".gif")
    with pytest.raises(ShapeError, match="float32"):
        codec.encode(numpy.zeros((2, 2), "float32"), ".png")


@pytest.mark.parametrize("interp", range(5))
def test_a_batch_is_resized_image_by_image(interp):
    whole = npx.image.resize(BATCH, (4, 11), interp=interp)
    for i in range(2):
        assert (whole[i] == npx.image.resize(BATCH[i], (4, 11), interp=interp)).all()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8", "bfloat16"])
def test_resizing_keeps_the_type(dtype):
    resized = image.imresize(X.astype(dtype), 9, 12)
    assert resized.dtype == X.astype(dtype).dtype
    assert numpy.abs(resized[::2].asnumpy().astype(float) - STORED["x"]).max() < 70


def test_flips_and_tensors_of_batches():
    assert (npx.image.flip_left_right(BATCH) == BATCH[:, :, ::-1]).all()
    assert (npx.image.flip_top_bottom(X) == X[::-1]).all()
    assert npx.image.to_tensor(BATCH).shape == (2, 3, 6, 9)
    tensor = npx.image.to_tensor(BATCH.astype("float64"))
    assert tensor.dtype == numpy.float32 and (tensor == npx.image.to_tensor(BATCH)).all()


def test_chance_decides_for_each_image_of_a_batch():
    np.random.seed(3)
    many = np.broadcast_to(X, (64, *X.shape))
    flipped = npx.image.random_flip_left_right(many).asnumpy()
    same = (flipped == STORED["x"]).all((1, 2, 3))
    assert 16 < same.sum() < 48
    assert (flipped[~same] == STORED["x"][:, ::-1]).all()
    np.random.seed(3)
    assert (npx.image.random_flip_left_right(many).asnumpy() == flipped).all()


def test_random_colours_stay_between_their_factors():
    np.random.seed(1)
    for _ in range(5):
        factor = (npx.image.random_brightness(F, 0.5, 0.7).sum() / F.sum()).item()
        assert 0.5 <= factor <= 0.7
    gray = (F * np.array([0.299, 0.587, 0.114])).sum(-1, keepdims=True)
    mixed = npx.image.random_saturation(F, 0.25, 0.25)
    numpy.testing.assert_allclose(mixed.asnumpy(), (F * 0.25 + gray * 0.75).asnumpy(), rtol=1e-5)
    spread = npx.image.random_lighting(F, 0.1) - F
    assert spread.reshape(-1, 3).std(0).max() < 1e-5 < abs(spread).max()


def test_color_jitter():
    random.seed(0)
    assert (npx.image.random_color_jitter(X) == X).all()
    changed = npx.image.random_color_jitter(X, 0.5, 0.5, 0.5, 0.5)
    assert changed.dtype == X.dtype and not (changed == X).all()


def test_random_rotation_of_a_batch():
    turned = image.random_rotate(BATCH.astype("float32").transpose(0, 3, 1, 2), (5, 50))
    assert turned.shape == (2, 3, 6, 9)
    with pytest.raises(TypeError, match="one angle"):
        image.imrotate(F.transpose(2, 0, 1), np.array([1.0, 2.0]))


def test_settings_can_be_written_down():
    assert image.ResizeAug(3).dumps() == '["resizeaug", {"size": 3, "interp": 2}]'
    assert image.SequentialAug([image.CastAug()]).dumps() == [
        "sequentialaug",
        ['["castaug", {"type": "float32"}]'],
    ]


def test_the_usual_augmenters():
    names = [
        type(a).__name__
        for a in image.CreateAugmenter(
            (3, 4, 4), resize=5, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True,
            std=True, brightness=0.1, hue=0.1, pca_noise=0.1, rand_gray=0.1,
        )
    ]  # fmt: skip
    assert names == [
        "ResizeAug", "RandomSizedCropAug", "HorizontalFlipAug", "CastAug", "ColorJitterAug",
        "HueJitterAug", "LightingAug", "RandomGrayAug", "ColorNormalizeAug",
    ]  # fmt: skip
    with pytest.raises(ArgumentError, match="rand_crop"):
        image.CreateAugmenter((3, 4, 4), rand_resize=True)
    crops = image.CreateMultiRandCropAugmenter([0.1, 0.3, 0.5], skip_prob=0.5)
    assert [crop.min_object_covered for crop in crops.aug_list] == [0.1, 0.3, 0.5]
