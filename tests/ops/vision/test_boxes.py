"""Boxes beyond what the registry's samples say: targets, detections, pooled regions."""

import math

import numpy
import pytest

from heterosis import np, npx
from heterosis.runtime.errors import HeterosisError


def boxes(rng, *shape):
    corners = numpy.sort(rng.uniform(0, 1, (*shape, 2, 2)), -2)
    return corners.reshape(*shape, 4).astype("float32")


def overlap(a, b):
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    shared = width * height
    covered = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / covered if covered > 0 else 0.0


def offsets(anchor, box):
    (al, at, ar, ab), (left, top, right, bottom) = anchor, box
    w, h = ar - al, ab - at
    return [
        ((left + right) / 2 - (al + ar) / 2) / w / 0.1,
        ((top + bottom) / 2 - (at + ab) / 2) / h / 0.1,
        math.log((right - left) / w) / 0.2,
        math.log((bottom - top) / h) / 0.2,
    ]


def targets(anchors, labels, predictions, threshold, ratio, limit):
    """One example, step by step: (offsets, which count, classes)."""
    labels = [row for row in labels if row[0] >= 0]
    shared = {
        (j, k): overlap(a, g[1:5]) for j, a in enumerate(anchors) for k, g in enumerate(labels)
    }
    match, free = {}, set(range(len(labels)))
    while free:
        value, j, k = max(
            ((v, -j, -k) for (j, k), v in shared.items() if j not in match and k in free),
            default=(0, 0, 0),
        )
        if value <= 1e-6:
            break
        match[-j] = -k
        free.discard(-k)
    best = {j: max((shared[j, k], -k) for k in range(len(labels))) for j in range(len(anchors))}
    match |= {j: -k for j, (v, k) in best.items() if j not in match and v > threshold}
    negative = set(range(len(anchors))) - set(match)
    if ratio > 0:
        odds = numpy.exp(predictions)[0] / numpy.exp(predictions).sum(0)
        candidates = sorted((odds[j], j) for j in negative if best[j][0] < limit)
        negative = {j for _, j in candidates[: int(len(match) * ratio)]}
    place, counts, classes = [], [], []
    for j, anchor in enumerate(anchors):
        found = j in match
        place += offsets(anchor, labels[match[j]][1:5]) if found else [0] * 4
        counts += [float(found)] * 4
        classes.append(labels[match[j]][0] + 1 if found else 0 if j in negative else -1)
    return place, counts, classes


@pytest.mark.parametrize("threshold, ratio", [(0.5, -1), (0.2, -1), (0.3, 1.5), (0.9, 100)])
def test_multibox_target(threshold, ratio):
    rng = numpy.random.default_rng(int(threshold * 10))
    anchors, truth = boxes(rng, 30), boxes(rng, 3, 4)
    kinds = rng.integers(0, 5, (3, 4, 1)).astype("float32")
    kinds[1, 2:] = -1
    labels = numpy.concatenate([kinds, truth], -1)
    predictions = rng.normal(size=(3, 6, 30)).astype("float32")
    got = npx.multibox_target(
        np.array(anchors[None]), np.array(labels), np.array(predictions),
        overlap_threshold=threshold, negative_mining_ratio=ratio, negative_mining_thresh=0.4,
    )  # fmt: skip
    rows = zip(labels, predictions, strict=True)
    expected = [targets(anchors, g, p, threshold, ratio, 0.4) for g, p in rows]
    for part, wanted in zip(got, zip(*expected, strict=True), strict=True):
        numpy.testing.assert_allclose(part.asnumpy(), wanted, rtol=2e-4, atol=2e-4)


def test_roi_pooling_counts_images_by_whole_numbers():
    """As MXNet does: a number of no image gives zeros."""
    x = np.arange(18, dtype="float32").reshape(2, 1, 3, 3)
    rois = [[n, 0, 0, 2, 2] for n in (-0.9, -1, 0, 1.9, 2, numpy.nan)]
    found = npx.roi_pooling(x, np.array(rois), pooled_size=(1, 1), spatial_scale=1.0)
    assert found.reshape(-1).tolist() == [8, 0, 8, 17, 0, 0]


def test_multibox_target_without_labels():
    rng = numpy.random.default_rng(0)
    anchors, predictions = np.array(boxes(rng, 1, 5)), np.zeros((2, 3, 5))
    for labels in (-np.ones((2, 3, 5)), np.zeros((2, 0, 5))):
        place, counts, classes = npx.multibox_target(anchors, labels, predictions)
        assert not place.any() and not counts.any() and (classes == -1).all()


def detections(scores, places, anchors, threshold, limit, any_class):
    """One example, step by step."""
    rows = []
    for j, anchor in enumerate(anchors):
        kind = int(scores[1:, j].argmax())
        if scores[kind + 1, j] < threshold:
            continue
        x, y, w, h = places[4 * j : 4 * j + 4] * (0.1, 0.1, 0.2, 0.2)
        aw, ah = anchor[2] - anchor[0], anchor[3] - anchor[1]
        x, y = x * aw + (anchor[0] + anchor[2]) / 2, y * ah + (anchor[1] + anchor[3]) / 2
        w, h = math.exp(w) * aw / 2, math.exp(h) * ah / 2
        box = numpy.clip([x - w, y - h, x + w, y + h], 0, 1)
        rows.append([kind, scores[kind + 1, j], *box])
    rows.sort(key=lambda row: -row[1])
    for i, better in enumerate(rows):
        for row in rows[i + 1 :] if better[0] >= 0 else ():
            if (any_class or row[0] == better[0]) and overlap(row[2:], better[2:]) >= limit:
                row[0] = -1
    return rows + [[-1] * 6] * (len(anchors) - len(rows))


@pytest.mark.parametrize("threshold, limit, any_class", [(0.01, 0.5, False), (0.6, 0.2, True)])
def test_multibox_detection(threshold, limit, any_class):
    rng = numpy.random.default_rng(7)
    anchors = boxes(rng, 40)
    scores = rng.uniform(size=(2, 4, 40)).astype("float32")
    places = rng.normal(size=(2, 160)).astype("float32")
    got = npx.multibox_detection(
        np.array(scores), np.array(places), np.array(anchors[None]),
        threshold=threshold, nms_threshold=limit, force_suppress=any_class,
    )  # fmt: skip
    rows = zip(scores, places, strict=True)
    expected = [detections(s, p, anchors, threshold, limit, any_class) for s, p in rows]
    numpy.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-4, atol=1e-5)


def test_only_the_best_detections_stay():
    rng = numpy.random.default_rng(7)
    arguments = [
        np.array(rng.uniform(size=(1, 3, 20)).astype("float32")), np.zeros((1, 80)),
        np.array(boxes(rng, 1, 20)),
    ]  # fmt: skip
    kinds = npx.multibox_detection(*arguments, nms_threshold=1.0, nms_topk=5)[0, :, 0].asnumpy()
    assert (kinds[:5] >= 0).all() and (kinds[5:] == -1).all()
    scores = npx.multibox_detection(*arguments, nms_threshold=0.0)[0, :, 1].asnumpy()
    numpy.testing.assert_array_equal(scores, arguments[0].asnumpy()[0, 1:].max(0))


@pytest.mark.parametrize(
    "call",
    [
        lambda: npx.multibox_prior(np.ones((3, 4))),
        lambda: npx.multibox_target(np.ones((1, 5, 4)), np.ones((1, 2, 5)), np.ones((1, 3, 4))),
        lambda: npx.multibox_detection(np.ones((1, 2, 5)), np.ones((1, 16)), np.ones((1, 5, 4))),
        lambda: npx.roi_pooling(np.ones((1, 2, 3)), np.ones((1, 5)), (2, 2), 1.0),
        lambda: npx.roi_pooling(np.ones((1, 2, 3, 3)), np.ones((1, 5)), (0, 2), 1.0),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(HeterosisError):
        call()
