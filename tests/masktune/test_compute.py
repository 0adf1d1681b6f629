import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from accelerate.state import AcceleratorState, PartialState

from masktune import compute as module
from masktune.compute import accelerator
from masktune.errors import ConfigError


def test_a_device_this_machine_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="no device 'tpu'"):
        accelerator("tpu")


def test_there_is_one_accelerator_a_device():
    assert accelerator("cpu") is accelerator("cpu")
    if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
        assert accelerator("auto") is accelerator("cpu")


@pytest.fixture
def afresh(monkeypatch):
    """Forget what was made, as a process that has just started; the old is put back afterwards."""
    monkeypatch.setattr(module, "_made", {})
    monkeypatch.setattr(AcceleratorState, "_shared_state", {})
    monkeypatch.setattr(PartialState, "_shared_state", {})


def test_threads_that_ask_at_once_get_the_same_one_and_it_works(afresh):
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def ask(_):
        found = accelerator("cpu")
        return found, found.device.type, found.num_processes

    try:
        with ThreadPoolExecutor(8) as threads:
            every = list(threads.map(ask, range(400)))
    finally:
        sys.setswitchinterval(usual)

    assert {(id(found), *rest) for found, *rest in every} == {(id(every[0][0]), "cpu", 1)}


def test_another_device_leaves_the_one_in_use_as_it_was(afresh, monkeypatch):
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # Accelerate sets it on Apple's GPUs
    found = torch.device("mps")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: found)
    monkeypatch.setattr(PartialState, "default_device", property(lambda _: found))
    first = accelerator("cpu")

    second = accelerator("auto")

    assert (first.device.type, second.device.type) == ("cpu", "mps")
    assert accelerator("mps") is second
    assert accelerator("cpu") is first


@pytest.mark.skipif(torch.cuda.is_available(), reason="processes do share the work of GPUs")
def test_a_launcher_whose_processes_would_each_do_everything_is_an_error(afresh, monkeypatch):
    # Apple's GPU takes one process; two that torchrun started would each do the whole run.
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    found = torch.device("mps")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: found)
    monkeypatch.setattr(PartialState, "default_device", property(lambda _: found))
    monkeypatch.setattr(os, "environ", {**os.environ, "WORLD_SIZE": "2", "RANK": "0"})

    with pytest.raises(ConfigError, match="2 processes") as caught:
        accelerator("mps")

    assert "--device cpu" in caught.value.remedy
    assert module._made == {}
