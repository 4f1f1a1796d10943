"""Writing files so that nothing half-written is ever found under their name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_aside(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file beside `path` that takes its name once the block ends without an error.

    A crash or `kill -9` leaves the old file, or none, under the name. Raises `OSError`
    naming the path if the folder cannot be written to.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes it private
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(path: str | Path) -> None:
    """Raise `ValueError` now rather than after an hour, if `path` cannot be written."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; allowed: the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"{path} cannot be written ({reason}); allowed: a file in a folder that can") from error
