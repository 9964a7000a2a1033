"""What is on GPUs. Without one, `HETEROSIS_STAND_IN_GPUS=2` lets the processor play two."""

import pytest

from heterosis import npx

needs_gpus = pytest.mark.skipif(npx.num_gpus() == 0, reason="there is no GPU, and no stand-in")
