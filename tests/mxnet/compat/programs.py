"""Small programs as people wrote them for MXNet, by name; each must run and print its text."""

PROGRAMS = {
    "arrays of mx.nd": (
        """
import mxnet as mx
import numpy
from mxnet import nd

a = mx.nd.array([[1, 2], [3, 4]], ctx=mx.cpu())
b = nd.ones((2, 2), ctx=mx.cpu(0)).as_in_context(mx.cpu())
c = nd.dot(a, b) + nd.zeros(shape=(2, 2)) * 2
c[0, :] = 9
print(c.asnumpy().tolist(), c.shape, c.context, c.dtype == numpy.float32)
print(nd.concat(a, b, dim=1).shape, nd.stack(a, b).shape, a.reshape((-1,)).sum().asscalar())
sums = nd.softmax(a).sum(axis=1)
print(sums.asnumpy().round(3).tolist(), nd.argmax(a, axis=1).asnumpy().tolist())
mx.nd.waitall()
""",
        """\
[[9.0, 9.0], [7.0, 7.0]] (2, 2) cpu(0) True
(2, 4) (2, 2, 2) 10.0
[1.0, 1.0] [1.0, 1.0]
""",
    ),
    "gradients by hand": (
        """
from mxnet import autograd, nd

x = nd.arange(4).reshape((4, 1))
x.attach_grad()
with autograd.record():
    y = 2 * nd.dot(x.T, x)
y.backward()
print(x.grad.asnumpy().ravel().tolist())
""",
        "[0.0, 4.0, 8.0, 12.0]\n",
    ),
    "a block of its own": (
        """
import mxnet as mx
from mxnet import gluon, init
from mxnet.gluon import nn

class Residual(gluon.HybridBlock):
    def __init__(self, units, **kwargs):
        super(Residual, self).__init__(**kwargs)
        with self.name_scope():
            self.dense = nn.Dense(units, in_units=units)
            self.scale = self.params.get("scale", shape=(1, units), init=mx.init.One())

    def hybrid_forward(self, F, x, scale):
        return F.broadcast_mul(F.Activation(self.dense(x), act_type="relu"), scale) + x

net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(Residual(3))
net.collect_params().initialize(init.Constant(0.5), ctx=mx.cpu())
print(net(mx.nd.ones((1, 3))).asnumpy().tolist())
print(sorted(net.collect_params().keys()))
""",
        """\
[[2.5, 2.5, 2.5]]
['net_residual0_dense0_bias', 'net_residual0_dense0_weight', 'net_residual0_scale']
""",
    ),
    "iterators and metrics": (
        """
import mxnet as mx
import numpy as np

data = mx.io.NDArrayIter(np.arange(10).reshape(5, 2), np.arange(5), batch_size=2)
metric = mx.metric.Accuracy()
for batch in data:
    label = batch.label[0]
    metric.update([label], [mx.nd.one_hot(label, 5)])
    print(batch.data[0].shape, batch.pad)
print(metric.get())
""",
        "(2, 2) 0\n(2, 2) 0\n(2, 2) 1\n('accuracy', 1.0)\n",
    ),
    "errors of one class": (
        """
import mxnet as mx
from mxnet.base import MXNetError

try:
    mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3))).wait_to_read()
except MXNetError as error:
    print("caught", issubclass(MXNetError, Exception))
ctx = mx.gpu(0) if mx.context.num_gpus() else mx.cpu()
print(ctx, mx.current_context() == ctx)
""",
        "caught True\ncpu(0) True\n",
    ),
    "a whole training program": (
        '''
"""Learns which side of a line points lie on."""
from __future__ import print_function

import argparse

import mxnet as mx
from mxnet import autograd, gluon, lr_scheduler, np, npx
from mxnet.gluon import nn
from mxnet.gluon import loss as gloss

npx.set_np()
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch-size", type=int, default=32)
options = parser.parse_args()

mx.random.seed(7)
points = np.random.uniform(-1, 1, size=(512, 2))
sides = (points[:, 0] + 2 * points[:, 1] > 0.1).astype("float32")
loader = gluon.data.DataLoader(
    gluon.data.ArrayDataset(points, sides), batch_size=options.batch_size, shuffle=True
)

net = nn.Sequential()
net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.1), nn.Dense(2))
net.initialize(mx.init.Xavier(magnitude=2.24), ctx=npx.cpu())
loss = gloss.SoftmaxCrossEntropyLoss()
schedule = lr_scheduler.FactorScheduler(step=100, factor=0.9, base_lr=0.02)
trainer = gluon.Trainer(net.collect_params(), mx.optimizer.Adam(0.02, lr_scheduler=schedule))

for epoch in range(options.epochs):
    metric, total = mx.metric.Accuracy(), 0.0
    for x, y in loader:
        x = x.as_in_ctx(npx.cpu())
        with autograd.record():
            outputs = net(x)
            l = loss(outputs, y)
        l.backward()
        trainer.step(x.shape[0])
        total += float(l.mean())
        metric.update([y.as_nd_ndarray()], [outputs.as_nd_ndarray()])
accuracy = float((net(points).argmax(axis=1).astype("float32") == sides).astype("float32").mean())
print("learned" if accuracy > 0.95 and metric.get()[1] > 0.8 else (accuracy, metric.get()))
net.save_parameters("net.params")
again = nn.Sequential()
again.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.1), nn.Dense(2))
again.load_parameters("net.params", ctx=npx.cpu())
print(np.abs(again(points) - net(points)).max().item())
''',
        "learned\n0.0\n",
    ),
}

ARGUMENTS = {"a whole training program": ["--epochs", "8", "--batch-size", "32"]}
