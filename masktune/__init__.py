"""MaskTune: find the clue a classifier leans on, hide it, finetune for one epoch, compare.

The public names stand in ``__init__.pyi`` and are imported when they are first used: a waiting job
or the first screen of the app must not import all of PyTorch for one small module.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
