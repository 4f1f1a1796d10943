"""The first cell says the device and the time to expect."""

import pytest
import torch

from minilab.textbook import start


@pytest.mark.parametrize("threads", [1, 2])
def test_it_names_the_device_and_the_minutes(threads, capsys):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        start(minutes=2.5)
    finally:
        torch.set_num_threads(before)
    out = capsys.readouterr().out
    assert out.startswith("Device: ") and "about 2.5 minutes on two CPU cores" in out
    if not torch.cuda.is_available():
        assert f"{threads} threads" in out and ("Only one thread" in out) == (threads == 1)
