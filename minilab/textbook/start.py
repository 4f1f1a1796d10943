"""What a chapter's first cell says: the device it found, and how long the chapter takes on it."""

from __future__ import annotations

import torch

from minilab.checks import number
from minilab.records.store import describe_device
from minilab.training import pick_device


def start(minutes: float) -> None:
    """Set the book's figure style, and print the device and the time to expect.

    `minutes`: of the whole chapter on two CPU cores, as measured when the book was built. Above 0, else `ValueError`.
    """
    number("minutes", minutes, 0.0, open_low=True)
    from minilab.textbook.style import use_book_style

    use_book_style()
    device = pick_device()
    time = f"{minutes:g} minute{'' if minutes == 1 else 's'}"
    print(f"Device: {describe_device(device)}.")
    if device.type == "cpu":
        print(f"This chapter takes about {time} on two CPU cores.")
    else:
        print(f"This chapter takes about {time} on two CPU cores, and less on a GPU.")
    if torch.get_num_threads() < 2:
        print("Only one thread is in use here: expect about twice that.")
