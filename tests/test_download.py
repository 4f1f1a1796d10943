"""Downloads that break off, servers that lie, processes that are killed: nothing half-done is ever taken for whole."""

import hashlib
import http.server
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from minilab import download as module
from minilab.download import download, one_at_a_time, set_aside, unpack

CONTENT = random.Random(0).randbytes(600_000)
SIZE, MD5 = len(CONTENT), hashlib.md5(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `server.content`, with the faults named in `server.faults`; writes down the Range of each GET."""

    def do_HEAD(self):
        self.send_response(405 if "no HEAD" in self.server.faults else 200)
        self.end_headers()

    def do_GET(self):
        faults, content, span = self.server.faults, self.server.content, self.headers.get("Range")
        self.server.ranges.append(span)
        start = int(span.removeprefix("bytes=").removesuffix("-")) if span and "no ranges" not in faults else 0
        if "missing" in faults:
            return self.send_error(404)
        if span and "416" in faults:
            return self.send_error(416)
        self.send_response(206 if span and "no ranges" not in faults else 200)
        if span and "no ranges" not in faults:
            shown = start + 1 if "another part" in faults else start
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        if "no length" not in faults:
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = min(start + 150_000, len(content)) if "breaks off" in faults else len(content)
        for place in range(start, end, 50_000):
            self.wfile.write(content[place : min(place + 50_000, end)])
            time.sleep(self.server.pause)
        return None

    def log_message(self, *arguments):
        """Keep quiet."""


@contextmanager
def serving(*faults, content=CONTENT, pause=0.0):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.faults, server.content, server.ranges, server.pause = faults, content, [], pause
    server.url = f"http://127.0.0.1:{server.server_port}/archive.tar.gz"
    server.handle_error = lambda *_: None  # a client that was killed
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """No proxy between a test and its server, and no long waits."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "SILENCE", 3.0)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "archive.tar.gz"


def part_of(target):
    return target.with_name(target.name + ".part")


def assert_whole(target):
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == [target.name]


@pytest.mark.parametrize("faults", [(), ("no length",), ("no HEAD",), ("no ranges",), ("416",)])
def test_a_server_that_works_gives_the_file(target, faults):
    with serving(*faults) as server:
        download(target, [server.url], SIZE, MD5)
    assert_whole(target)
    assert server.ranges == [None]


def test_a_download_goes_on_where_it_stopped(target):
    part_of(target).write_bytes(CONTENT[:200_001])
    with serving() as server:
        download(target, [server.url], SIZE, MD5)
    assert_whole(target)
    assert server.ranges == ["bytes=200001-"]


@pytest.mark.parametrize("faults", [("no ranges",), ("416",), ("no ranges", "no length")])
def test_a_server_without_ranges_starts_again(target, faults):
    part_of(target).write_bytes(CONTENT[:200_001])
    with serving(*faults) as server:
        download(target, [server.url], SIZE, MD5)
    assert_whole(target)
    assert server.ranges[0] == "bytes=200001-"


@pytest.mark.parametrize("faults", [("breaks off",), ("breaks off", "no length")])
def test_a_connection_that_breaks_off_is_taken_up_again(target, faults):
    with serving(*faults) as server:
        download(target, [server.url], SIZE, MD5)
    assert_whole(target)
    assert server.ranges == [None, "bytes=150000-", "bytes=300000-", "bytes=450000-"]


@pytest.mark.parametrize("old", [b"x" * 200_000, b"x" * SIZE, b"x" * (SIZE + 5)])
def test_bad_bytes_of_an_earlier_call_are_replaced(target, old):
    part_of(target).write_bytes(old)
    with serving() as server:
        download(target, [server.url], SIZE, MD5)
    assert_whole(target)


def test_a_truncated_file_is_not_taken(target):
    with (
        serving(content=CONTENT[:-1]) as server,
        pytest.raises(OSError, match="offers 599,999 bytes in place of 600,000"),
    ):
        download(target, [server.url], SIZE, MD5)
    assert not target.exists()


def test_a_server_that_never_finishes_is_given_up(target):
    with serving("breaks off", "no ranges") as server, pytest.raises(OSError, match="stopped after 150,000 of 600,000"):
        download(target, [server.url], SIZE, MD5)
    assert len(server.ranges) == module.ATTEMPTS
    assert not target.exists()


def test_a_wrong_checksum_says_so_and_what_to_do(target):
    wrong = b"y" * SIZE
    neighbour = target.parent / "mine.txt"
    neighbour.write_text("keep")
    with serving(content=wrong) as server, pytest.raises(OSError, match="no mirror gave") as caught:
        download(target, [server.url], SIZE, MD5)
    message = str(caught.value)
    assert hashlib.md5(wrong).hexdigest() in message
    assert f"put archive.tar.gz (MD5 {MD5}) into {target.parent} yourself" in message
    assert [path.name for path in target.parent.iterdir()] == ["mine.txt"]  # the bad bytes are gone, nothing else


def test_another_part_than_asked_for_leaves_the_bytes_that_are_there(target):
    part_of(target).write_bytes(CONTENT[:1000])
    with serving("another part") as server, pytest.raises(OSError, match="when asked for what follows byte 1000"):
        download(target, [server.url], SIZE, MD5)
    assert part_of(target).read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize("bad", ["missing", "wrong", "short", "silent", "closed", "nonsense"])
def test_the_next_mirror_is_tried(target, bad):
    with socket.create_server(("127.0.0.1", 0)) as silent, serving() as good:
        faults, content = (("missing",), CONTENT) if bad == "missing" else ((), b"z" * SIZE)
        with serving(*faults, content=content[:-1] if bad == "short" else content) as server:
            first = {
                "silent": f"http://127.0.0.1:{silent.getsockname()[1]}/",
                "closed": "http://127.0.0.1:1/",
                "nonsense": "no address at all",
            }.get(bad, server.url)
            download(target, [first, good.url], SIZE, MD5, patience=1)
    assert_whole(target)


def test_bytes_of_one_mirror_are_gone_on_from_with_the_next(target):
    part_of(target).write_bytes(CONTENT[:100])
    with serving("missing") as first, serving() as second:
        download(target, [first.url, second.url], SIZE, MD5)
    assert_whole(target)
    assert second.ranges == ["bytes=100-"]


def test_silent_mirrors_cost_their_patience_once(target):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}/{number}" for number in range(4)]
        start = time.monotonic()
        with pytest.raises(OSError, match="no answer within 0.5 s|timed out"):
            download(target, urls, SIZE, MD5, patience=0.5)
        assert time.monotonic() - start < 2


@pytest.mark.fault
def test_a_killed_download_is_resumed(target):
    script = "import sys; from pathlib import Path; from minilab.download import download;"
    script += f"download(Path(sys.argv[1]), [sys.argv[2]], {SIZE}, '{MD5}')"
    with serving(pause=30) as server:
        child = subprocess.Popen([sys.executable, "-c", script, str(target), server.url], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 200
        while not (part_of(target).exists() and part_of(target).stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
        there = part_of(target).stat().st_size
        assert 0 < there < SIZE
        assert not target.exists()
        server.pause = 0
        download(target, [server.url], SIZE, MD5)
    assert_whole(target)
    assert server.ranges == [None, f"bytes={there}-"]


# Unpacking

FILES = {"a.bin": b"a" * 1000, "b.bin": random.Random(1).randbytes(300_000)}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}


def tar(path: Path, members) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, BytesIO(content))
    return path


GOOD = [(f"data/{name}", content) for name, content in FILES.items()]


@pytest.mark.parametrize("prefix", ["data/", "./data/"])
def test_only_the_expected_files_come_out(tmp_path, prefix):
    inside = tmp_path / "inside"
    inside.mkdir()
    evil = [("../evil", b"1"), (str(tmp_path / "evil"), b"1"), ("data/../../evil", b"1"), ("data/readme.html", b"1")]
    evil += [("data/link", "/etc/passwd"), ("other/a.bin", b"1"), ("data/sub/a.bin", b"1")]
    archive = tar(inside / "x.tar.gz", evil + [(prefix + name, content) for name, content in FILES.items()])
    unpack(archive, inside / "data", DIGESTS)
    assert {path.name: path.read_bytes() for path in (inside / "data").iterdir()} == FILES
    assert sorted(path.name for path in inside.iterdir()) == ["data", "x.tar.gz"]
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (GOOD[:1], r"data/b.bin with SHA-256 \(missing\)"),
        ([GOOD[0], ("data/b.bin", b"short")], "data/b.bin with SHA-256 [0-9a-f]{64}; allowed: " + DIGESTS["b.bin"]),
        ([("data/a.bin", "/etc/passwd"), GOOD[1]], r"data/a.bin with SHA-256 \(missing\)"),
    ],
)
def test_a_wrong_archive_leaves_the_old_folder(tmp_path, members, message):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "old").write_text("keep")
    with pytest.raises(ValueError, match=message):
        unpack(tar(tmp_path / "x.tar.gz", members), folder, DIGESTS)
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "x.tar.gz"]


def test_a_folder_in_the_way_is_set_aside(tmp_path, capsys):
    folder = tmp_path / "data"
    for number in (1, 2):
        folder.mkdir(exist_ok=True)
        (folder / "old").write_text(str(number))
        unpack(tar(tmp_path / "x.tar.gz", GOOD), folder, DIGESTS)
        assert (tmp_path / f"data.aside-{number}" / "old").read_text() == str(number)
        assert f"kept as data.aside-{number}" in capsys.readouterr().out
    assert set_aside(folder).name == "data.aside-3"


@pytest.mark.fault
@pytest.mark.skipif(os.name == "nt", reason="no such lock there")
def test_one_at_a_time_waits_and_a_killed_holder_frees_it(tmp_path, capsys):
    script = "import sys, time; from minilab.download import one_at_a_time\n"
    script += "with one_at_a_time(sys.argv[1]): print('in', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "in\n"
    timer = threading.Timer(0.5, child.kill)
    timer.start()
    start = time.monotonic()
    with one_at_a_time(tmp_path / "lock"):
        assert time.monotonic() - start > 0.3
    assert "waiting for it" in capsys.readouterr().out
    child.wait()
    child.stdout.close()
