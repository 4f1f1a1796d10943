"""Writing files so that nothing half-written is ever found under their name, and by one process at a time."""

from __future__ import annotations

import errno
import glob
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

DISK = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}  # full, or broken: no fault of a network
LEFT = 60.0  # seconds without a write after which an unlocked file beside ours is what a killed process left


@contextmanager
def written_aside(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file beside `path` that takes its name once the block ends without an error.

    A crash or `kill -9` leaves the old file, or none, under the name; what a killed process left beside it is
    removed by a later call. Raises `OSError` naming the path if it cannot be written, as on a full disk.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    with naming(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                _is_ours(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # mkstemp makes it private
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an `OSError` of the disk name `path`: that of a write names no file, and ours are under another name."""
    try:
        yield
    except OSError as error:
        aside = str(error.filename).startswith(str(path.with_name(f".{path.name}.")))
        if aside or (error.filename is None and error.errno in DISK):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def one_writer(path: str | Path | None) -> Iterator[None]:
    """Keep other processes out of such a block with the same `path`; None keeps nobody out.

    Raises `OSError` naming it if another process is inside, `ValueError` if it cannot be written at all. A killed
    process holds nothing.
    """
    if path is None:
        yield
        return
    path = Path(path)
    check_writable(path)
    busy = f"another process is at work on {path}; allowed: one at a time. Wait for it, or name another file"
    with held(path.with_name(f".{path.name}.lock"), busy):
        yield


@contextmanager
def held(lock: Path, busy: str) -> Iterator[None]:
    """Hold the file `lock`, which is there only meanwhile; `OSError` saying `busy` if another process holds it.

    The system frees it when the process ends, even by `kill -9`. Windows has no such lock in Python's library.
    """
    if sys.platform == "win32":
        yield
        return
    lock.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(lock, "ab") as file:
            if not _is_ours(file):
                raise OSError(busy)
            if not _is_at(file, lock):  # its last holder removed it before we had it: nobody else would see ours
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_ours(file: BinaryIO) -> bool:
    """Lock `file` for this process; False if another has. A file system without locks keeps nobody out."""
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _remove_leftovers(path: Path) -> None:
    """Remove what killed processes left beside `path`: old, and locked by nobody."""
    if sys.platform == "win32":
        return
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError), open(left, "rb") as file:  # gone already, or another's: let it be
            if time.time() - os.fstat(file.fileno()).st_mtime > LEFT:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()


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
