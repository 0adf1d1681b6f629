"""The pictures of the first demo."""

import pytest

from masktune.datasets.catalogue import load


@pytest.fixture(scope="module")
def digits():
    return load("biased-mnist-5k")
