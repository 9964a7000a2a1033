"""Vision datasets from files made here, and transforms."""

import gzip
import random
import struct
import tarfile

import numpy
import pytest

from heterosis import np, npx, recordio
from heterosis.gluon import data
from heterosis.gluon.data import vision
from heterosis.gluon.data.vision import transforms
from heterosis.image import codec
from heterosis.runtime.errors import ArgumentError, DTypeError, FormatError

RNG = numpy.random.default_rng(0)
DIGITS = RNG.integers(0, 256, (7, 28, 28), "uint8")
LABELS = RNG.integers(0, 10, 7, "uint8")


def idx(array):
    return struct.pack(f">{array.ndim + 1}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def digits(tmp_path):
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(DIGITS))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS)))
    return tmp_path


@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST])
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.main_memory("processes that fetch batches have no GPU")
def test_digits(digits, kind, train):
    dataset = kind(root=digits, train=train)
    assert len(dataset) == 7
    pixels, label = dataset[3]
    assert (pixels.shape, pixels.dtype, label.dtype) == ((28, 28, 1), numpy.uint8, numpy.int32)
    assert (pixels.asnumpy()[..., 0] == DIGITS[3]).all() and label.item() == LABELS[3]
    several, labels = dataset[2:5]
    assert several.shape == (3, 28, 28, 1) and labels.tolist() == LABELS[2:5].tolist()
    for workers in (0, 2):
        batches = list(data.DataLoader(dataset, 4, num_workers=workers))
        assert (np.concatenate([x for x, _ in batches])[..., 0].asnumpy() == DIGITS).all()
        assert [n for _, y in batches for n in y.tolist()] == LABELS.tolist()
    doubled = kind(digits, transform=lambda x, y: (x * 2.0, y + 1))[0]
    assert doubled[1].item() == LABELS[0] + 1
    assert next(iter(data.DataLoader(kind(digits, transform=lambda x, y: y + 1), 1))) == doubled[1]


def test_the_usual_folder(digits, monkeypatch):
    monkeypatch.setenv("MXNET_HOME", str(digits.parent))
    (digits.parent / "datasets").mkdir(exist_ok=True)
    (digits.parent / "datasets" / "mnist").symlink_to(digits)
    try:
        assert len(vision.MNIST()) == 7
    finally:
        (digits.parent / "datasets" / "mnist").unlink()


def test_files_that_are_missing_or_wrong(digits):
    with pytest.raises(FileNotFoundError, match=r"train-images.*gz is not in /nowhere.*zalando"):
        vision.FashionMNIST(root="/nowhere")
    with pytest.raises(FileNotFoundError, match=r"data_batch_1.bin, or cifar-10-.*kriz"):
        vision.CIFAR10(root="/nowhere")
    images = digits / "train-images-idx3-ubyte"
    images.write_bytes(idx(DIGITS)[:-5])
    with pytest.raises(FormatError, match="cut"):
        vision.MNIST(digits)
    images.write_bytes(idx(DIGITS[:4]))
    with pytest.raises(FormatError, match="4 images and 7 labels"):
        vision.MNIST(digits)
    (digits / "train-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8b\x08 no more")
    with pytest.raises(FormatError, match="ended before the end-of-stream"):
        vision.MNIST(digits)


def rows(count, labels):
    return RNG.integers(0, 100, (count, labels + 3072), "uint8")


@pytest.mark.parametrize("place", ["root", "folder", "archive"])
def test_photographs(tmp_path, place):
    inner = tmp_path / "cifar-10-batches-bin"
    folder = tmp_path if place == "root" else inner
    folder.mkdir(exist_ok=True)
    written = [rows(3, 1) for _ in range(6)]
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    for name, content in zip(names, written, strict=True):
        (folder / name).write_bytes(content.tobytes())
    if place == "archive":
        with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
            archive.add(inner, "cifar-10-batches-bin")
        for name in names:
            (inner / name).unlink()
    train, test = vision.CIFAR10(tmp_path), vision.CIFAR10(tmp_path, train=False)
    assert (len(train), len(test)) == (15, 3)
    pixels, label = train[4]
    assert pixels.shape == (32, 32, 3) and label.item() == written[1][1, 0]
    expected = written[1][1, 1:].reshape(3, 32, 32).transpose(1, 2, 0)
    assert (pixels.asnumpy() == expected).all()


def test_photographs_of_a_hundred_kinds(tmp_path):
    content = rows(4, 2)
    (tmp_path / "train.bin").write_bytes(content.tobytes())
    assert vision.CIFAR100(tmp_path)[1][1].item() == content[1, 0]
    assert vision.CIFAR100(tmp_path, fine_label=True)[1][1].item() == content[1, 1]
    (tmp_path / "train.bin").write_bytes(content.tobytes()[:-1])
    with pytest.raises(FormatError, match="rows of 3074"):
        vision.CIFAR100(tmp_path)
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(b"none")
    with pytest.raises(FormatError, match="truncated header"):
        vision.CIFAR100(tmp_path, train=False)


def picture(i):
    return numpy.full((6, 8, 3), 10 * i, "uint8")


def test_folders(tmp_path):
    for folder, numbers in (("cat", (1, 2)), ("ant", (3,))):
        (tmp_path / folder).mkdir()
        for i in numbers:
            (tmp_path / folder / f"{i}.png").write_bytes(codec.encode(picture(i), ".png"))
    (tmp_path / "cat" / "notes.txt").write_text("")
    (tmp_path / "readme").write_text("")
    with pytest.warns(UserWarning, match="Ignoring"):
        dataset = vision.ImageFolderDataset(tmp_path)
    assert dataset.synsets == ["ant", "cat"] and [y for _, y in dataset.items] == [0, 1, 1]
    pixels, label = dataset[1]
    assert (pixels == 10).all() and pixels.shape == (6, 8, 3) and label == 1
    with pytest.warns(UserWarning, match="Ignoring"):
        gray = vision.ImageFolderDataset(tmp_path, flag=0, transform=lambda x, y: (x, -y))
    assert gray[2][0].shape == (6, 8, 1) and gray[2][1] == -1
    with pytest.raises(FileNotFoundError, match="no folder"):
        vision.ImageFolderDataset(tmp_path / "nowhere")
    listed = vision.ImageListDataset(tmp_path, [[0, "ant/3.png"], [[1, 2], "cat/1.png"]])
    assert listed[0][1] == 0 and listed[1][1].tolist() == [1, 2]
    (tmp_path / "list.txt").write_text("0\t5\tant/3.png\n")
    assert vision.ImageListDataset(tmp_path, "list.txt")[0][1] == 5


def test_records(tmp_path):
    with recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as file:
        for i in range(6):
            header = recordio.IRHeader(0, i, i, 0)
            file.write_idx(i, recordio.pack_img(header, picture(i), img_fmt=".png"))
    dataset = vision.ImageRecordDataset(str(tmp_path / "a.rec"))
    assert len(dataset) == 6 and dataset[2][1] == 2 and (dataset[2][0] == 20).all()
    for workers in (0, 2):  # which read from one open file
        loader = data.DataLoader(dataset, 2, num_workers=workers, shuffle=True)
        for pixels, labels in loader:
            assert (pixels.asnumpy()[:, 0, 0, 0] == 10 * labels.asnumpy()).all()


# -- transforms -----------------------------------------------------------------------------------

IMAGE = np.array(RNG.integers(0, 256, (20, 30, 3), "uint8"))


@pytest.mark.main_memory("pictures are in main memory")
def test_to_what_models_take():
    chain = transforms.Compose(
        [transforms.Resize(8), transforms.ToTensor(), transforms.Normalize((0.1, 0.2, 0.3), 0.5)]
    )
    expected = npx.image.normalize(
        npx.image.to_tensor(npx.image.resize(IMAGE, 8)), (0.1, 0.2, 0.3), 0.5
    )
    assert (chain(IMAGE) == expected).all() and len(chain) == 3
    assert transforms.Cast("float16")(IMAGE).dtype == numpy.float16


@pytest.mark.each("transform")
@pytest.mark.parametrize(
    "transform, shape",
    [
        (transforms.Resize((7, 5)), (5, 7, 3)),
        (transforms.Resize(10, keep_ratio=True), (10, 15, 3)),
        (transforms.CenterCrop((9, 4)), (4, 9, 3)),
        (transforms.CenterCrop(40), (40, 40, 3)),
        (transforms.CropResize(2, 3, 10, 5), (5, 10, 3)),
        (transforms.CropResize(2, 3, 10, 5, (6, 7)), (7, 6, 3)),
        (transforms.RandomResizedCrop(12), (12, 12, 3)),
        (transforms.RandomFlipLeftRight(), (20, 30, 3)),
        (transforms.RandomFlipTopBottom(), (20, 30, 3)),
        (transforms.RandomBrightness(0.5), (20, 30, 3)),
        (transforms.RandomContrast(0.5), (20, 30, 3)),
        (transforms.RandomSaturation(0.5), (20, 30, 3)),
        (transforms.RandomHue(0.5), (20, 30, 3)),
        (transforms.RandomColorJitter(0.2, 0.2, 0.2, 0.2), (20, 30, 3)),
        (transforms.RandomLighting(0.2), (20, 30, 3)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_shape_and_type(transform, shape):
    result = transform(IMAGE)
    assert (result.shape, result.dtype) == (shape, IMAGE.dtype)


def test_rotations():
    planes = npx.image.to_tensor(IMAGE)
    assert (transforms.Rotate(30)(planes) == npx.image.imrotate(planes, 30)).all()
    random.seed(0)
    turned = transforms.RandomRotation((10, 40))(planes)
    assert turned.shape == planes.shape and not (turned == planes).all()
    assert transforms.RandomRotation((10, 40), rotate_with_proba=0)(planes) is planes
    with pytest.raises(DTypeError, match="float32"):
        transforms.Rotate(30)(IMAGE)
    with pytest.raises(ArgumentError, match="lower one first"):
        transforms.RandomRotation((40, 10))
    with pytest.raises(ArgumentError, match="0 to 1"):
        transforms.RandomRotation((10, 40), rotate_with_proba=2)


def test_chance_of_a_transform():
    always = transforms.RandomApply([transforms.ToTensor()], p=1.0)
    assert always(IMAGE).shape == (3, 20, 30)
    never = transforms.RandomApply(transforms.ToTensor(), p=-1.0)
    assert never(IMAGE) is IMAGE


def test_in_workers():
    chain = transforms.Compose([transforms.RandomResizedCrop(8), transforms.ToTensor()])
    dataset = data.ArrayDataset([IMAGE] * 6, list(range(6))).transform_first(chain)
    for x, y in data.DataLoader(dataset, 3, num_workers=2):
        assert x.shape == (3, 3, 8, 8) and y.shape == (3,)
        assert (x[0] != x[1]).any()
