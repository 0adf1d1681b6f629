"""For all tests: one thread each, which is quicker for small networks on a busy machine."""

import gc

from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")


def pytest_collection_finish():
    """Compute in one thread; leave modules and tests out of what is looked through for garbage."""
    import torch  # here: the process that only hands out tests has no use for it

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
