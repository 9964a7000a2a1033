"""Every operation gives the same eagerly and in a captured program, and so do its gradients."""

import pytest

import heterosis
from tests.capture.calls import differentiable, gradients_agree, results_agree, sampled


@pytest.mark.each("name")
@pytest.mark.parametrize("name, dtype", list(sampled()))
def test_results(name, dtype, some):
    results_agree(name, dtype, heterosis.hybridize, 4, some)


@pytest.mark.parametrize("name", list(differentiable()))
def test_gradients(name):
    gradients_agree(name, heterosis.hybridize, 16)
