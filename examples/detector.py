"""A single-shot detector finds coloured shapes on noise: python examples/detector.py"""

import numpy
from shared import SHAPES, Report, draw_shape, options

from heterosis import autograd, gluon, init, np, npx
from heterosis.gluon import nn

SIDE, MOST, BATCH = 64, 3, 32
KINDS = SHAPES[:3]
SIZES = ((0.2, 0.27), (0.37, 0.45))  # of the anchors, on each of two maps
RATIOS = (1.0, 1.5, 0.67)
ANCHORS = len(SIZES[0]) + len(RATIOS) - 1  # at each place


def scenes(count, seed):
    """Images (count, 3, 64, 64) and labels (count, 3, 5): a kind and a box, or -1 for nothing."""
    generator = numpy.random.default_rng(seed)
    images = generator.normal(0, 0.4, (count, 3, SIDE, SIDE)).astype("float32")
    labels = numpy.full((count, MOST, 5), -1, "float32")
    for image, rows in zip(images, labels, strict=True):
        taken = numpy.zeros((SIDE, SIDE), bool)
        for row in rows[: generator.integers(1, MOST + 1)]:
            radius, kind = generator.uniform(7, 15), generator.integers(len(KINDS))
            centre = generator.uniform(radius, SIDE - radius, 2)
            left, top = (centre - radius).astype(int)
            place = numpy.s_[top : top + int(2 * radius) + 2, left : left + int(2 * radius) + 2]
            if taken[place].any():
                break
            taken[place] = True
            drawn = draw_shape(image, KINDS[kind], centre, radius, generator)
            rows_in, columns_in = (numpy.flatnonzero(drawn.any(axis)) for axis in (1, 0))
            ends = columns_in[0], rows_in[0], columns_in[-1] + 1, rows_in[-1] + 1
            row[:] = kind, *numpy.array(ends) / SIDE
    return images, labels


def halving(channels):
    """Two convolutions, and half the height and width."""
    block = nn.HybridSequential()
    for _ in range(2):
        block.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    block.add(nn.MaxPool2D(2))
    return block


class Detector(gluon.HybridBlock):
    """Anchors, scores of all classes for each of them, and offsets from them to boxes."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.base = nn.HybridSequential()
        self.base.add(halving(16), halving(32), halving(64))
        self.smaller = halving(64)
        self.scores, self.offsets = nn.HybridSequential(), nn.HybridSequential()
        for _ in SIZES:
            self.scores.add(nn.Conv2D(ANCHORS * (len(KINDS) + 1), 3, padding=1))
            self.offsets.add(nn.Conv2D(ANCHORS * 4, 3, padding=1))

    def hybrid_forward(self, F, x):
        near = self.base(x)
        maps = (near, self.smaller(near))
        anchors = [
            F.npx.multibox_prior(m, sizes=sizes, ratios=RATIOS)
            for m, sizes in zip(maps, SIZES, strict=True)
        ]
        scores, offsets = (
            [F.npx.batch_flatten(head(m).transpose((0, 2, 3, 1))) for head, m in zip(heads, maps)]
            for heads in (self.scores, self.offsets)
        )
        scores = F.np.concatenate(scores, 1).reshape((x.shape[0], -1, len(KINDS) + 1))
        return F.np.concatenate(anchors, 1), scores, F.np.concatenate(offsets, 1)


def train(net, data, trainer):
    """One epoch; the mean loss."""
    class_loss, total = gluon.loss.SoftmaxCrossEntropyLoss(), np.zeros(1)
    for x, y in data:
        with autograd.record():
            anchors, scores, offsets = net(x)
            with autograd.pause():
                aims, counts, classes = npx.multibox_target(
                    anchors, y, scores.transpose((0, 2, 1)), negative_mining_ratio=3.0
                )
            of_classes = class_loss(scores, np.maximum(classes, 0), np.expand_dims(classes >= 0, 2))
            of_offsets = npx.smooth_l1(counts * (offsets - aims), scalar=1.0).mean(1)
            loss = of_classes + 4 * of_offsets
        loss.backward()
        trainer.step(x.shape[0])
        total += loss.mean()
    return total.item() / len(data)


def overlap(box, boxes):
    """Intersection over union of a box with each of several."""
    corners = numpy.maximum(box[:2], boxes[:, :2]), numpy.minimum(box[2:], boxes[:, 2:])
    shared = numpy.prod((corners[1] - corners[0]).clip(0), 1)
    areas = [numpy.prod(b[..., 2:] - b[..., :2], -1) for b in (box, boxes)]
    return shared / (areas[0] + areas[1] - shared)


def evaluate(net, data):
    """Average precision at an overlap of 1/2, and the mean overlap of what was found."""
    found, objects = [], 0  # found: score, and the overlap with an object that none before has
    for x, y in data:
        anchors, scores, offsets = net(x)
        probabilities = npx.softmax(scores).transpose((0, 2, 1))
        detected = npx.multibox_detection(probabilities, offsets, anchors, nms_threshold=0.4)
        for rows, labels in zip(detected.asnumpy(), y.asnumpy(), strict=True):
            labels = labels[labels[:, 0] >= 0]
            objects, free = objects + len(labels), numpy.ones(len(labels), bool)
            for kind, score, *box in rows[rows[:, 0] >= 0]:
                shared = overlap(numpy.array(box), labels[:, 1:]) * free * (labels[:, 0] == kind)
                best = shared.argmax()
                free[best] &= shared[best] <= 0.5
                found.append((score, shared[best]))
    overlaps = numpy.array(sorted(found, reverse=True))[:, 1]
    hits = overlaps > 0.5
    precision = hits.cumsum() / (1 + numpy.arange(len(hits)))
    return (precision * hits).sum() / objects, overlaps[hits].mean() if hits.any() else 0.0


def main():
    given = options(__doc__)
    count, epochs, required = (128, 2, 0.001) if given.quick else (1000, 4, 0.85)
    report = Report("Single-shot detector", given.output)
    np.random.seed(0)
    net = Detector()
    net.initialize(init.Xavier())
    data, test = (
        gluon.data.DataLoader(
            gluon.data.ArrayDataset(*map(np.array, scenes(n, seed))), BATCH, shuffle=seed == 1
        )
        for n, seed in ((count, 1), (count // 4, 2))
    )
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    for epoch in range(epochs):
        trainer.set_learning_rate(0.003 * (1 - epoch / epochs))
        loss = train(net, data, trainer)
        precision, shared = evaluate(net, test)
        report.epoch(loss=loss, average_precision=precision, mean_overlap=shared)
    report.finish("average precision", required)


if __name__ == "__main__":
    main()
