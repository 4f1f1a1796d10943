"""A full disk and a folder that takes nothing: named with exit code 2, the old file whole, nothing left beside it."""

import hashlib
import os
import random
import tempfile
from pathlib import Path

import pytest
import writers
from test_download import serving, tar

from minilab import cli, data
from minilab.download import unpack

pytestmark = pytest.mark.fault


def asserted(kind: str, path: Path, old: bytes, code: int, error: str, reason: str) -> None:
    assert code == 2 and "Traceback" not in error
    assert str(path) in error and reason in error, error
    assert path.read_bytes() == old
    writers.WRITERS[kind].read(path)
    assert writers.parts(path.parent) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("kind", writers.WRITERS)
def test_no_space_left(kind, tmp_path, monkeypatch, capsys):
    path = writers.prepare(tmp_path, monkeypatch)[kind]
    old = path.read_bytes()
    with writers.full_disk(monkeypatch):
        code = writers.WRITERS[kind].run(path)
    asserted(kind, path, old, code, capsys.readouterr().err, "No space left on device")
    assert writers.WRITERS[kind].run(path) == 0  # once there is space, the same command goes through


@pytest.mark.parametrize("kind", writers.WRITERS)
def test_the_disk_takes_half(kind, tmp_path, monkeypatch, capsys, record_property):
    """Refused by the kernel in the middle of the file, wherever the middle is."""
    path = writers.prepare(tmp_path, monkeypatch)[kind]
    old = path.read_bytes()
    reason = "is a disk full?" if kind == "deck" else "File too large"  # genanki's own database is refused first
    shares = (0.0, 0.5, 0.95) if kind != "checkpoint" else (0.5,)
    for share in shares:
        with writers.no_file_above(int(share * len(old))):
            code = writers.WRITERS[kind].run(path)
        asserted(kind, path, old, code, capsys.readouterr().err, reason)
    record_property("inputs", len(shares))


def test_a_download_that_the_disk_refuses_is_kept_and_gone_on_from(tmp_path, monkeypatch, capsys):
    """No mirror is blamed or asked again; what came stays, as after a kill, and the next call needs only the rest."""
    content = random.Random(0).randbytes(600_000)
    archive = data.OFFICIAL.__class__("x.tar.gz", len(content), hashlib.md5(content).hexdigest(), "x", {}, 1, ())
    real, target = data.fetch, tmp_path / "x.tar.gz"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(data, "unpack", lambda *_: None)
    monkeypatch.setattr(data, "_is_whole", lambda *_: False)
    with serving(content=content) as server:
        mirrors = [server.url, server.url + "2"]
        monkeypatch.setattr(cli, "fetch", lambda root: real(root, mirrors, archive=archive))
        with writers.no_file_above(300_000):
            assert cli.main(["data", "--root", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert f"File too large: '{target}.part'" in error and "mirror" not in error
        assert server.ranges == [None] and not target.exists()
        assert 0 < Path(f"{target}.part").stat().st_size <= 300_000
        assert cli.main(["data", "--root", str(tmp_path)]) == 0
        assert server.ranges[1].startswith("bytes=")
    assert target.read_bytes() == content and not Path(f"{target}.part").exists()


def test_an_archive_that_the_disk_refuses_is_not_half_unpacked(tmp_path):
    files = {"a.bin": b"a" * 1000, "b.bin": b"b" * 100_000}
    members = [(f"data/{name}", content) for name, content in files.items()]
    archive = tar(tmp_path / "x.tar.gz", members)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    with writers.no_file_above(50_000), pytest.raises(OSError, match=f"File too large: '{tmp_path / 'data'}'"):
        unpack(archive, tmp_path / "data", digests)
    assert list(tmp_path.iterdir()) == [archive]


@pytest.fixture
def closed(tmp_path):
    """A folder that takes no file: by its permissions, or for root, whom they do not stop, in /proc."""
    if os.geteuid() != 0:
        folder = tmp_path / "closed"
        folder.mkdir()
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
    elif Path("/proc/self").exists():
        yield Path("/proc")
    else:
        pytest.skip("root can write everywhere here")


COMMANDS = {
    "record": [*writers.TRAIN, "--out", "{}/run.json"],
    "checkpoint": [*writers.TRAIN, "--checkpoint", "{}/run.pt"],
    "picture": [*writers.TRAIN, "--picture", "{}/run.png"],
    "picture of a record": ["show", "run.json", "--picture", "{}/run.png"],
    "bank": ["cards", "json", "--out", "{}/bank.json"],
    "deck": ["cards", "deck", "--out", "{}/deck.apkg"],
    "figures": ["bench", "--json", "{}/bench.json"],
    "sweep": ["sweep", "smoke", "--out", "{}/runs"],
    "data": ["data", "--root", "{}/data"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_takes_no_file_is_named_before_any_work(name, closed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "open_images", lambda name: pytest.fail("work was begun"))
    (tmp_path / "run.json").write_bytes(writers._record())
    before = list(tmp_path.iterdir())
    arguments = [word.format(closed) for word in COMMANDS[name]]
    named = next(word for word in arguments if word.startswith(str(closed)))
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert named in error and "Traceback" not in error
    assert list(tmp_path.iterdir()) == before


def test_a_checkpoint_that_cannot_be_written_is_refused_before_training(closed):
    from minilab.training import train

    with pytest.raises(ValueError, match="run.pt cannot be written"):
        train(writers.RECIPE, writers.images(), checkpoint=closed / "run.pt", progress=False, on_epoch=pytest.fail)


def test_the_tests_really_limit_files(tmp_path):
    """The instrument itself: with it a file ends where the limit is, and after it nothing is limited."""
    with writers.no_file_above(1000), pytest.raises(OSError, match="File too large"), tempfile.TemporaryFile() as file:
        file.write(b"x" * 1001)
        file.flush()
    (tmp_path / "x").write_bytes(b"x" * 1001)
