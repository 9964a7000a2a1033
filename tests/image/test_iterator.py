"""Batches of images from record files and lists."""

import numpy
import pytest

from heterosis import image, recordio
from heterosis.image import codec
from heterosis.runtime.errors import ArgumentError, FormatError, ShapeError

COUNT = 5


def picture(i):
    return numpy.full((6, 8, 3), 10 * i, "uint8")


@pytest.fixture
def records(tmp_path):
    paths = {"path_imgidx": str(tmp_path / "a.idx"), "path_imgrec": str(tmp_path / "a.rec")}
    with recordio.MXIndexedRecordIO(*paths.values(), "w") as file:
        for i in range(COUNT):
            header = recordio.IRHeader(0, i, i, 0)
            file.write_idx(i, recordio.pack_img(header, picture(i), img_fmt=".png"))
    return paths


def batches(iterator):
    return [(b.data[0].asnumpy(), b.label[0].asnumpy(), b.pad) for b in iterator]


def labels(iterator):
    return [label.tolist() for _, label, _ in batches(iterator)]


def test_records_in_order(records):
    iterator = image.ImageIter(2, (3, 4, 4), **records)
    assert iterator.provide_data == [("data", (2, 3, 4, 4))]
    assert iterator.provide_label == [("softmax_label", (2,))]
    found = batches(iterator)
    assert [pad for *_, pad in found] == [0, 0, 1]
    for data, label, _ in found:
        assert (data == 10 * label[:, None, None, None]).all()
    assert labels(iterator) == []
    iterator.reset()
    assert labels(iterator) == [[0, 1], [2, 3], [4, 0]]


@pytest.mark.parametrize("indexed", [True, False])
def test_last_batches(records, indexed):
    if not indexed:
        del records["path_imgidx"]
    discard = image.ImageIter(2, (3, 4, 4), last_batch_handle="discard", **records)
    assert labels(discard) == [[0, 1], [2, 3]]
    roll = image.ImageIter(2, (3, 4, 4), last_batch_handle="roll_over", **records)
    assert labels(roll) == [[0, 1], [2, 3]]
    roll.reset()
    assert labels(roll) == [[4, 0], [1, 2], [3, 4]]
    small = image.ImageIter(12, (3, 4, 4), **records)
    ((_, label, pad),) = batches(small)
    assert pad == 7 and label.tolist() == [*range(5), *range(5), 0, 1]


def test_parts_and_order(records):
    part = image.ImageIter(2, (3, 4, 4), part_index=1, num_parts=2, **records)
    assert labels(part) == [[2, 3]]
    shuffled = image.ImageIter(5, (3, 4, 4), shuffle=True, **records)
    orders = set()
    for _ in range(9):
        shuffled.reset()
        orders.add(tuple(labels(shuffled)[0]))
    assert len(orders) > 1 and {tuple(sorted(o)) for o in orders} == {tuple(range(5))}


def test_lists(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(codec.encode(picture(i), ".png"))
    text = tmp_path / "list.txt"
    text.write_text("".join(f"{i}\t{i}\t{i + 1}\t{i}.png\n" for i in range(3)))
    arguments = {"batch_size": 3, "data_shape": (3, 4, 4), "path_root": str(tmp_path)}
    listed = image.ImageIter(path_imglist=str(text), label_width=2, **arguments)
    assert labels(listed) == [[[0, 1], [1, 2], [2, 3]]]
    given = image.ImageIter(imglist=[[i, f"{i}.png"] for i in range(3)], **arguments)
    assert labels(given) == [[0, 1, 2]]
    text.write_text("what is this\n")
    with pytest.raises(FormatError, match="line 1"):
        image.ImageIter(path_imglist=str(text), **arguments)


def test_wrong_arguments(records):
    with pytest.raises(ArgumentError, match="path_imgrec"):
        image.ImageIter(2, (3, 4, 4))
    with pytest.raises(ShapeError, match="three channels"):
        image.ImageIter(2, (1, 4, 4), **records)
    with pytest.raises(ArgumentError, match="part_index=2"):
        image.ImageIter(2, (3, 4, 4), part_index=2, num_parts=2, **records)
    with pytest.raises(ArgumentError, match="path_imgidx"):
        image.ImageIter(2, (3, 4, 4), path_imgrec=records["path_imgrec"], shuffle=True)
    with pytest.raises(ShapeError, match="augmenters give"):
        next(image.ImageIter(2, (3, 4, 4), aug_list=[], **records))


def test_a_broken_image_is_named(tmp_path):
    (tmp_path / "bad.png").write_bytes(b"bad")
    iterator = image.ImageIter(1, (3, 4, 4), path_root=str(tmp_path), imglist=[[0, "bad.png"]])
    with pytest.raises(FormatError, match=r"file 'bad.png'"):
        next(iterator)


# -- detection ------------------------------------------------------------------------------------

BOXES = [[[0, 0.1, 0.1, 0.5, 0.5]], [[1, 0.2, 0.2, 0.9, 0.9], [2, 0.0, 0.5, 0.5, 1.0]]]


@pytest.fixture
def objects(tmp_path):
    entries = []
    for i, rows in enumerate(BOXES):
        (tmp_path / f"{i}.png").write_bytes(codec.encode(picture(i), ".png"))
        entries.append([numpy.array([2, 5, *numpy.ravel(rows)]), f"{i}.png"])
    return {"imglist": entries, "path_root": str(tmp_path)}


def test_detection(objects):
    iterator = image.ImageDetIter(2, (3, 4, 4), **objects)
    assert iterator.provide_label == [("label", (2, 2, 5))]
    ((data, label, _),) = batches(iterator)
    assert data.shape == (2, 3, 4, 4)
    numpy.testing.assert_allclose(label[0], [*BOXES[0], [-1] * 5], rtol=1e-6)
    numpy.testing.assert_allclose(label[1], BOXES[1], rtol=1e-6)


def test_detection_with_everything(objects):
    iterator = image.ImageDetIter(
        2, (3, 6, 6), rand_crop=0.5, rand_pad=0.5, rand_mirror=True, mean=True, std=True,
        brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1, pca_noise=0.1, rand_gray=0.1,
        **objects,
    )  # fmt: skip
    for _ in range(4):
        iterator.reset()
        for data, label, _ in batches(iterator):
            assert data.shape == (2, 3, 6, 6) and numpy.isfinite(data).all()
            boxes = label[label[..., 0] >= 0][:, 1:]
            assert ((boxes >= 0) & (boxes <= 1)).all()


def test_room_for_objects(objects):
    iterator = image.ImageDetIter(2, (3, 4, 4), **objects)
    other = image.ImageDetIter(2, (3, 4, 4), **{**objects, "imglist": objects["imglist"][:1]})
    iterator.sync_label_shape(other)
    assert other.label_shape == iterator.label_shape == (2, 5)
    iterator.reshape((3, 8, 8), (4, 5))
    ((data, label, _),) = batches(iterator)
    assert data.shape == (2, 3, 8, 8) and label.shape == (2, 4, 5)
    with pytest.raises(ShapeError, match="at least 4"):
        iterator.reshape(None, (1, 5))
    drawn = list(image.ImageDetIter(2, (3, 20, 20), **objects).draw_next(color=(255, 0, 0)))
    assert [(d.dtype, d.shape) for d in drawn] == [(numpy.uint8, (20, 20, 3))] * 2
    assert (drawn[0] == (255, 0, 0)).all(-1).any()


@pytest.mark.parametrize("label", [[2, 5, 1], [2, 5, 1, 2, 3, 4, 5, 6], [2, 5, 0, 0.5, 0, 0.1, 1]])
def test_labels_that_are_none(objects, label):
    objects["imglist"][0][0] = numpy.array(label)
    with pytest.raises(FormatError, match=r"0\.png"):
        image.ImageDetIter(2, (3, 4, 4), **objects)
