"""What programs are for XLA, printed."""

from heterosis import autograd, np, npx
from heterosis.backends.xla.stages import prepared
from heterosis.capture import capture


def gradient(x, w):
    w.attach_grad()
    with autograd.record():
        y = npx.convolution(x, w, kernel=(3, 3), num_filter=2, no_bias=True)
    y.backward()
    return w.grad


def test_sums_of_convolutions_are_whole():
    """Chunks of a batch are for the threads of the native back end."""
    program = capture(gradient, (np.ones((6, 1, 5, 5)), np.ones((2, 1, 3, 3))), {}).program
    before, after = str(program), str(prepared(program))
    assert "float32[6, 1, 2, 9] = correlate" in before and "sum(" in before
    assert "float32[1, 1, 2, 9] = correlate" in after and "sum(" not in after
