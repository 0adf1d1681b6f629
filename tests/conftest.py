"""For all tests: one thread each, which is quicker for small networks on a busy machine."""

import gc

import torch
from hypothesis import settings

torch.set_num_threads(1)

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")


def pytest_collection_finish():
    """Leave modules and tests out of what is looked through for garbage, after every page."""
    gc.collect()
    gc.freeze()
