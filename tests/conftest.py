"""For all tests: one thread each, which is quicker for small networks on a busy machine."""

import torch

torch.set_num_threads(1)
