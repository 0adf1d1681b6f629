"""How much memory the heat of a whole split takes at its peak, each count in a fresh process.

``python -m masktune.studies.bench.memory COUNT`` is that process; it prints the growth in bytes.
"""

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def peak_growth(count: int) -> int:
    """Measure how far computing and storing the heat of ``count`` pictures raises the peak.

    In bytes. The small CNN looks at noise of 28 x 28. The growth counts from when imports, pictures
    and model are in memory; it holds the working set of one batch, whatever the count, and the
    store.
    """
    command = [sys.executable, "-m", __name__, str(count)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(child.stdout)


def _growth(count: int) -> int:
    import torch

    from masktune.compute import accelerator
    from masktune.heat.explain import explain
    from masktune.heat.layers import cam_layer, name_of
    from masktune.models.build import build
    from masktune.studies.bench.ratios import SIDE, noise_split

    torch.set_num_threads(1)
    split = noise_split(count)
    model = build("small-cnn", 2)
    layer = name_of(model, cam_layer(model, size=(SIDE, SIDE)))
    compute = accelerator("cpu")
    with suppress(OSError):  # start the peak anew at what is held now, where the system allows it
        Path("/proc/self/clear_refs").write_text("5")
    start = peak()
    explain(model, split, layer=layer, compute=compute)
    return peak() - start


def peak() -> int:
    """Give the most memory this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: Linux starts it at the peak of the process that started this one, and a
        # benchmark that has just run ResNet-18 would hide every growth.
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        if found is not None:
            return 1024 * int(found[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    sys.stdout.write(f"{_growth(int(sys.argv[1]))}\n")
