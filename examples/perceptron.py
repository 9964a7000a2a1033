"""A multilayer perceptron, 512-256-128-2, called a thousand times; every call is queued."""

import time
from itertools import pairwise

from heterosis import np, npx

SIZES = (512, 256, 128, 2)
layers = [(np.random.normal(0, n**-0.5, size=(n, m)), np.zeros(m)) for n, m in pairwise(SIZES)]


def net(x):
    """Two outputs for each row of 512 inputs."""
    for weight, bias in layers[:-1]:
        x = npx.relu(np.dot(x, weight) + bias)
    weight, bias = layers[-1]
    return np.dot(x, weight) + bias


x = np.random.normal(size=(1, 512))
print(net(x))

start = time.perf_counter()
for _ in range(1000):
    y = net(x)
npx.waitall()
print(f"{time.perf_counter() - start:.4f} seconds for 1000 calls")
