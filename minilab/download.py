"""Fetch and unpack a large archive: resumed where it stopped, from whichever mirror works, checked before use."""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from minilab.files import naming

if sys.platform != "win32":
    import fcntl

ATTEMPTS = 5  # connections to one mirror, each going on where the last one broke off
SILENCE = 30.0  # seconds without a byte after which a connection counts as broken
BLOCK = 1 << 18  # bytes read at a time


def download(target: Path, mirrors: Sequence[str], size: int, md5: str, patience: float = 30.0) -> None:
    """Fetch `target` from the first of `mirrors` (URLs) that gives a file of `size` bytes with this MD5.

    Bytes gather in `target` + ".part" and stay there when the process is killed, so that the next call goes on
    from them, with any mirror. `target` itself appears in one step, whole and checked. A mirror that does not
    answer within `patience` seconds is passed over; all are asked at once.

    Raises:
        OSError: no mirror gave the file, and the message says what went wrong with each; or the disk does not
            take it, and the message names `target` + ".part".
    """
    part = target.with_name(target.name + ".part")
    problems: dict[str, str] = {}
    for url in _answering(mirrors, patience, problems):
        for _ in range(2):  # a second time from nothing, in case it was the bytes of an earlier call that were bad
            resumed = _size(part) > 0
            try:
                _complete(part, url, size)
            except (OSError, HTTPException, ValueError) as error:
                if _is_of(part, error):  # no mirror can help
                    raise
                problems[url] = f"{error or type(error).__name__}"
                break
            found = file_md5(part)
            if found == md5:
                os.replace(part, target)
                return
            part.unlink()  # only what was fetched for this file; nothing that was here before
            problems[url] = f"sent a file with MD5 {found} in place of {md5}"
            if not resumed:
                break
    reasons = "".join(f"\n  {url}: {problems[url]}" for url in mirrors)
    raise OSError(
        f"no mirror gave {target.name}:{reasons}\nTry again later (what came is kept, and is gone on "
        f"from), or put {target.name} (MD5 {md5}) into {target.parent} yourself"
    )


def unpack(archive: Path, folder: Path, digests: Mapping[str, str]) -> None:
    """Make `folder` out of the files in a tar `archive` that are named here, each with its SHA-256.

    Every other member is passed over, and no path from the archive is used, so it can't write anywhere else.
    The files gather in a temporary folder, which takes its name in one step when all are right. A folder that
    has the name already is set aside, not deleted.

    Raises:
        ValueError: a file is missing from the archive, or is not the expected one.
        OSError: the disk does not take them; the message names the folder.
    """
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        fresh = Path(temporary) / folder.name
        fresh.mkdir()
        found = {}
        with naming(folder), tarfile.open(archive) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                source = tar.extractfile(member) if path.parent.name == folder.name and member.isreg() else None
                if source is None or path.name not in digests:
                    continue
                digest = hashlib.sha256()
                with open(fresh / path.name, "wb") as file:
                    while block := source.read(BLOCK):
                        digest.update(block)
                        file.write(block)
                found[path.name] = digest.hexdigest()
        for name, expected in digests.items():
            if found.get(name) != expected:
                raise ValueError(
                    f"{archive} has {folder.name}/{name} with SHA-256 {found.get(name, '(missing)')}; "
                    f"allowed: {expected}. Delete the archive and fetch it again"
                )
        if folder.exists():
            set_aside(folder)
        fresh.rename(folder)


def set_aside(path: Path) -> Path:
    """Rename a file or folder that is in the way, say so, and return its new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.aside-{number}")).exists():
        number += 1
    path.rename(aside)
    print(f"{path} is not what it should be: kept as {aside.name}")
    return aside


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Wait until no other process is inside such a block with the same `lock` file, then keep others out.

    The system frees the lock when the process ends, even by `kill -9`. Windows has no such lock in Python's
    library: two processes there may spoil each other's download, which its checksum then shows.
    """
    with open(lock, "w") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"Another process is fetching into {lock.parent}: waiting for it.")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def file_md5(path: Path) -> str:
    """The MD5 of a file, in hex."""
    digest = hashlib.md5(usedforsecurity=False)  # what the authors published; SHA-256 follows in `unpack`
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _answering(mirrors: Sequence[str], patience: float, problems: dict[str, str]) -> Iterator[str]:
    """Yield, in order, the mirrors that answer in time; write down what is wrong with the others.

    Each is asked in a thread of its own: without a network, looking up one name can hang for much longer than
    any timeout that a connection has.
    """
    answers: dict[str, str] = {}

    def ask(url: str) -> None:
        try:
            with urllib.request.urlopen(_request(url, method="HEAD"), timeout=patience):
                answers[url] = ""
        except urllib.error.HTTPError:
            answers[url] = ""  # it does answer, if only to say that it does not take this kind of question
        except (OSError, HTTPException, ValueError) as error:
            answers[url] = str(error) or type(error).__name__

    threads = [threading.Thread(target=ask, args=(url,), daemon=True) for url in mirrors]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience
    for url, thread in zip(mirrors, threads, strict=True):
        thread.join(max(0.0, deadline - time.monotonic()))
        problem = answers.get(url, f"no answer within {patience:g} s")
        if problem:
            problems[url] = problem
        else:
            yield url


def _complete(part: Path, url: str, size: int) -> None:
    """Bring `part` to `size` bytes from one mirror. Raises if a connection brings nothing, or the last one ends."""
    for attempt in range(ATTEMPTS):
        before = _size(part)
        if before == size:
            return
        try:
            _receive(part, url, size)
        except (OSError, HTTPException) as error:
            if attempt == ATTEMPTS - 1 or _size(part) <= before or _is_of(part, error):
                raise
    if _size(part) != size:
        raise OSError(f"stopped after {_size(part):,} of {size:,} bytes, {ATTEMPTS} times")


def _receive(part: Path, url: str, size: int) -> None:
    """Add to `part` what one connection gives, from where `part` ends; from nothing if the server can't do that."""
    start = _size(part) if _size(part) <= size else 0
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        response = urllib.request.urlopen(_request(url, headers), timeout=SILENCE)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not start:
            raise
        part.unlink()  # 416: the server has nothing from there on, so begin again
        response = urllib.request.urlopen(_request(url), timeout=SILENCE)
        start = 0
    with response, naming(part), open(part, "ab") as file:
        start = start if response.status == 206 else 0
        _check_offer(response.headers, start, size)
        file.truncate(start)
        with tqdm(desc=part.stem, total=size, initial=start, unit="B", unit_scale=True) as bar:
            while start < size and (block := response.read1(min(BLOCK, size - start))):
                file.write(block)
                start += len(block)
                bar.update(len(block))


def _check_offer(headers: Mapping[str, str], start: int, size: int) -> None:
    """Raise an OSError if a server announces another part than the one from `start`, or another size."""
    span = headers.get("Content-Range")
    if span is None:
        end = start + int(headers.get("Content-Length") or size - start)
    else:
        first, _, whole = span.removeprefix("bytes ").partition("/")
        if first.split("-")[0] != str(start):
            raise OSError(f"sends {span} when asked for what follows byte {start}")
        end = size if whole == "*" else int(whole)
    if end != size:
        raise OSError(f"offers {end:,} bytes in place of {size:,}")


def _request(url: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> urllib.request.Request:
    return urllib.request.Request(url, headers={"User-Agent": "minilab", **(headers or {})}, method=method)


def _is_of(part: Path, error: Exception) -> bool:
    """Whether it is this machine's disk that failed, not the network."""
    return isinstance(error, OSError) and str(error.filename) == str(part)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
