"""What is sent arrives as it was, of whatever shape and type."""

import torch

from minilab.transfer import send


def test_on_the_cpu_nothing_is_copied():
    tensors = [torch.arange(3), torch.rand(2, 2)]
    assert all(a is b for a, b in zip(send(tensors, torch.device("cpu")), tensors, strict=True))


def test_shapes_and_types_arrive_on_another_device():
    tensors = [torch.arange(3), torch.rand(3, 1), torch.tensor([True] * 5), torch.rand(0, 4), torch.rand(2, 3).T]
    sent = send(tensors, torch.device("meta"))
    assert [(t.shape, t.dtype, t.device.type) for t in sent] == [(t.shape, t.dtype, "meta") for t in tensors]


def test_the_numbers_arrive(monkeypatch):
    """Packed and unpacked as for another device, which is the CPU here; in one copy."""
    copies = []

    def to(tensor, device, non_blocking):
        copies.append((tensor.dtype, non_blocking))
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", to)
    tensors = [torch.arange(3), torch.rand(3, 1), torch.tensor([True, False] * 3), torch.rand(0, 4), torch.rand(2, 3).T]
    sent = send(tensors, torch.device("meta"))
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(sent, tensors, strict=True))
    assert copies == [(torch.uint8, True)]
