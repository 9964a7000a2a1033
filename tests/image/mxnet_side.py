"""What MXNet 1.9.1 does to small images. Runs in a Python that has it."""

import random
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as onp
from mxnet import image, nd, np, npx, recordio

SIZES = [(5, 4), (14, 11), (9, 3), (4, 3)]
LABEL = [[0, 0.1, 0.1, 0.6, 0.7], [1, 0.4, 0.3, 0.9, 0.9]]
MARK = b"\x0a\x23\xd7\xce"
RECORDS = [
    b"",
    b"a",
    b"abcd",
    MARK,
    b"abcd" + MARK + b"efgh" + MARK * 2 + b"i",
    b"ab" + MARK,
    b"end",
]


def seeded(seed, function, *arguments):
    random.seed(seed)
    onp.random.seed(seed)
    return function(*arguments)


def operations(found, x, f):
    X, F = np.array(x, dtype="uint8"), np.array(f)
    found["to_tensor"] = npx.image.to_tensor(X)
    found["normalize"] = npx.image.normalize(
        npx.image.to_tensor(X), mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7)
    )
    for kind, data in (("u", X), ("f", F)):
        for name in ("brightness", "contrast", "hue"):
            for factor in (0.37, 1.4):
                changed = getattr(npx.image, "random_" + name)(data, factor, factor)
                found[f"{name}_{kind}_{factor}"] = changed
        found[f"lighting_{kind}"] = npx.image.adjust_lighting(data, (0.1, -0.2, 0.3))
        for interp in range(5):
            for w, h in SIZES:
                found[f"resize_{kind}_{interp}_{w}_{h}"] = image.imresize(data, w, h, interp=interp)
    found["short"] = image.resize_short(X, 4)
    found["keep"] = npx.image.resize(X, 4, True)
    found["center"] = image.center_crop(X, (4, 3))[0]
    found["center_larger"] = image.center_crop(X, (12, 8))[0]
    found["fixed"] = image.fixed_crop(X, 1, 2, 5, 3, (7, 8))
    for seed in range(3):
        found[f"crop_{seed}"] = seeded(seed, image.random_crop, X, (4, 3))[0]
        area = (0.3, 0.8), (0.75, 1.33)
        found[f"sized_{seed}"] = seeded(seed, image.random_size_crop, X, (4, 3), *area)[0]


def legacy(found, x, f):
    """What works without NumPy semantics only."""
    npx.reset_np()
    planes = nd.array(f.transpose(2, 0, 1))
    for angle in (0, 30, 90, -45, 200.0):
        for zoom in ((False, False), (True, False), (False, True)):
            rotated = image.imrotate(planes, angle, *zoom)
            found[f"rotate_{angle}_{zoom[0]:d}{zoom[1]:d}"] = rotated
    pixels = nd.array(x.astype("float32"))
    for text in (Path(__file__).parent / "augmenters.txt").read_text().splitlines():
        augmenter = eval(text, {**vars(image), "numpy": onp})
        name = type(augmenter).__name__
        if name.startswith("Det"):
            pair = seeded(7, augmenter, pixels.copy(), onp.array(LABEL))
            found["aug_" + name], found["label_" + name] = pair
        else:
            found["aug_" + name] = seeded(5, augmenter, pixels.copy())


def files(found, contents):
    for name, content in contents.items():
        found["file_" + name] = content
        for flag in (0, 1):
            found[f"decoded_{flag}_{name}"] = image.imdecode(content.tobytes(), flag)


def records(found, folder):
    written = recordio.MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "w")
    for i, record in enumerate(RECORDS):
        written.write_idx(i, record)
    header = recordio.IRHeader(0, [1, 2.5], 7, 9)
    written.write_idx(len(RECORDS), recordio.pack(header, b"img"))
    written.write_idx(len(RECORDS) + 1, recordio.pack(recordio.IRHeader(0, 3, 7, 9), b"img"))
    written.close()
    for name in ("a.idx", "a.rec"):
        content = Path(folder, name).read_bytes()
        found["record_" + name] = onp.frombuffer(content, "uint8")


def answers(contents):
    """All of it by names; `contents` are image files to decode."""
    rng = onp.random.RandomState(3)
    x = rng.randint(0, 256, (6, 9, 3)).astype("uint8")
    f = (x / 255).astype("float32")
    found = {"x": x, "f": f}
    operations(found, x, f)
    files(found, contents)
    with tempfile.TemporaryDirectory() as folder:
        records(found, folder)
    legacy(found, x, f)
    return {k: v.asnumpy() if isinstance(v, mx.nd.NDArray) else v for k, v in found.items()}
