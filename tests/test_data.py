"""CIFAR-10 on disk: fetched whole or not at all, read right, and refused when it is corrupt."""

import dataclasses
import hashlib
import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from test_download import GOOD, serving, tar

from minilab import data
from minilab.data import OFFICIAL, RECORD, cifar10, data_root, default, fetch, open_images


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every test has its own data folder, no mirrors of its own, and no way out to the real ones."""
    monkeypatch.setenv("MINILAB_DATA", str(tmp_path / "root"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("MINILAB_MIRRORS", raising=False)
    return tmp_path / "root"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small archive in the layout of the official one, its bytes, and what it must be."""
    records = {name: random.Random(name).randbytes(RECORD) for name in OFFICIAL.files}
    members = [(f"{OFFICIAL.folder}/{name}", content) for name, content in records.items()]
    members += [(f"{OFFICIAL.folder}/readme.html", b"hello"), ("../evil", b"1"), *GOOD]
    content = tar(tmp_path_factory.mktemp("archive") / OFFICIAL.name, members).read_bytes()
    archive = dataclasses.replace(
        OFFICIAL,
        size=len(content),
        md5=hashlib.md5(content).hexdigest(),
        files={name: hashlib.sha256(record).hexdigest() for name, record in records.items()},
        file_size=RECORD,
        mirrors=(),
    )
    return archive, content, records


def assert_fetched(root, small):
    archive, content, records = small
    assert {path.name: path.read_bytes() for path in (root / archive.folder).iterdir()} == records
    assert (root / archive.name).read_bytes() == content
    assert not [path for path in root.iterdir() if path.suffix == ".part" or (path.is_dir() and path.name[0] == ".")]


def write_files(root, **changed):
    """Files of the official size, all zeros (so airplanes, all black) but for the given records by file."""
    folder = root / OFFICIAL.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in OFFICIAL.files:
        with open(folder / name, "wb") as file:
            for place, record in changed.get(name.removesuffix(".bin"), {}).items():
                file.seek(place * RECORD)
                file.write(bytes(record))
            file.truncate(OFFICIAL.file_size)
    return folder


# Fetching


def test_fetch_downloads_and_unpacks_once(here, small):
    archive, content, _ = small
    with serving(content=content) as server:
        assert fetch(mirrors=[server.url], archive=archive) == here / archive.folder
        assert fetch(mirrors=[server.url], archive=archive) == here / archive.folder
        assert server.ranges == [None]
    assert_fetched(here, small)


def test_mirrors_of_ones_own_come_from_the_environment(here, small, monkeypatch):
    archive, content, _ = small
    with serving(content=content) as server, serving("missing") as built_in:
        monkeypatch.setenv("MINILAB_MIRRORS", f"{server.url} http://127.0.0.1:1/")
        fetch(archive=dataclasses.replace(archive, mirrors=(built_in.url,)))
        assert built_in.ranges == []
    assert_fetched(here, small)


def test_an_archive_put_there_by_hand_needs_no_server(here, small):
    archive, content, _ = small
    here.mkdir()
    (here / archive.name).write_bytes(content)
    fetch(mirrors=["http://127.0.0.1:1/"], archive=archive)
    assert_fetched(here, small)


def test_a_wrong_archive_is_set_aside_and_fetched_anew(here, small, capsys):
    archive, content, _ = small
    here.mkdir()
    (here / archive.name).write_bytes(b"another file")
    with serving(content=content) as server:
        fetch(mirrors=[server.url], archive=archive)
    assert (here / f"{archive.name}.aside-1").read_bytes() == b"another file"
    assert "is not what it should be" in capsys.readouterr().out
    assert_fetched(here, small)


@pytest.mark.parametrize("damage", ["short", "missing"])
def test_a_broken_folder_is_set_aside_only_when_a_good_one_is_there(here, small, damage):
    archive, content, records = small
    folder = here / archive.folder
    folder.mkdir(parents=True)
    for name, record in records.items():
        (folder / name).write_bytes(record)
    (folder / "test_batch.bin").write_bytes(b"short") if damage == "short" else (folder / "test_batch.bin").unlink()
    with pytest.raises(OSError, match="no mirror gave"):
        fetch(mirrors=["http://127.0.0.1:1/"], archive=archive)
    assert (folder / "data_batch_1.bin").exists()
    with serving(content=content) as server:
        fetch(mirrors=[server.url], archive=archive)
    assert (here / f"{archive.folder}.aside-1" / "data_batch_1.bin").read_bytes() == records["data_batch_1.bin"]
    assert_fetched(here, small)


def test_a_bad_download_leaves_what_was_good(here, small):
    archive, content, _ = small
    with serving(content=content) as server:
        fetch(mirrors=[server.url], archive=archive)
    (here / archive.name).unlink()
    (here / archive.folder / "data_batch_3.bin").unlink()
    with serving(content=b"x" * len(content)) as server, pytest.raises(OSError, match="MD5"):
        fetch(mirrors=[server.url], archive=archive)
    assert len(list((here / archive.folder).iterdir())) == 5
    assert not (here / archive.name).exists()


def child(small, url, before=""):
    """A process that fetches the small archive from `url`, after running `before`."""
    script = f"import sys, json, dataclasses, time; from minilab import data, download\n{before}\n"
    script += "archive = data.Archive(**json.loads(sys.argv[1])); data.fetch(mirrors=[sys.argv[2]], archive=archive)"
    arguments = [sys.executable, "-c", script, json.dumps(dataclasses.asdict(small[0])), url]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@pytest.mark.fault
def test_a_killed_unpacking_leaves_nothing_that_is_taken_for_whole(here, small):
    # the archive is asked for each name in turn: stop for good once the third file is written
    stop = "real = data.unpack\nclass Stop(dict):\n"
    stop += "  def __contains__(self, name): time.sleep(600 if '_4' in name else 0); return name in self.keys()\n"
    stop += "data.unpack = lambda file, folder, digests: real(file, folder, Stop(digests))"
    archive, content, _ = small
    with serving(content=content) as server:
        process = child(small, server.url, before=stop)
        deadline = time.monotonic() + 200
        while not list(here.glob(f".{archive.folder}.*/*/*_3.bin")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert list(here.glob(f".{archive.folder}.*/*/*_3.bin"))
        assert not (here / archive.folder).exists()
        fetch(mirrors=[server.url], archive=archive)
        assert server.ranges == [None]
    assert_fetched(here, small)


@pytest.mark.fault
@pytest.mark.skipif(sys.platform == "win32", reason="no lock there")
def test_two_processes_at_once_share_one_download(here, small):
    with serving(content=small[1], pause=0.2) as server:
        processes = [child(small, server.url) for _ in range(2)]
        errors = [process.communicate()[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], errors
        assert server.ranges == [None]
    assert_fetched(here, small)
    assert not list(here.glob("*.aside-*"))  # the second one did not unpack again


def test_a_folder_that_cannot_be_written_is_an_os_error(here, small):
    here.write_text("a file where the folder should be")
    with pytest.raises(OSError, match="root"):
        fetch(archive=small[0])


# Reading


def test_records_are_read_in_order_with_planes_as_channels(here):
    pixels = np.arange(3072, dtype=np.int64) * 7 % 251
    write_files(here, data_batch_2={3: [9, *pixels]}, test_batch={9999: [5, *pixels[::-1]]})
    images = cifar10(download=False)
    assert images.train.shape == (50_000, 3, 32, 32)
    assert images.test.shape == (10_000, 3, 32, 32)
    assert images.train.is_contiguous()
    assert torch.equal(images.train[10_003], torch.from_numpy(pixels.reshape(3, 32, 32).astype(np.uint8)))
    assert torch.equal(images.test[9999].flatten(), torch.from_numpy(pixels[::-1].astype(np.uint8)))
    assert images.train_labels.nonzero().tolist() == [[10_003]]
    assert (images.train_labels[10_003], images.test_labels[9999]) == (9, 5)
    assert images.classes[9] == "truck"
    assert images.name == "CIFAR-10 (unverified copy)"


def test_the_name_is_earned_by_the_bytes(here, monkeypatch):
    write_files(here)
    zeros = hashlib.sha256(bytes(OFFICIAL.file_size)).hexdigest()
    monkeypatch.setattr(data, "JPEG_COPY", hashlib.sha256(6 * zeros.encode()).hexdigest())
    assert cifar10().name == "CIFAR-10 (JPEG copy)"
    monkeypatch.setattr(data, "OFFICIAL", dataclasses.replace(OFFICIAL, files=dict.fromkeys(OFFICIAL.files, zeros)))
    assert cifar10().name == "CIFAR-10"


@pytest.mark.parametrize("size", [0, 30_729_999, 30_730_001])
def test_a_file_of_the_wrong_size_is_named(here, size):
    with open(write_files(here) / "data_batch_4.bin", "r+b") as file:
        file.truncate(size)
    for read in (cifar10, default):
        with pytest.raises(
            ValueError, match=rf"data_batch_4.bin has {size:,} bytes; allowed: 30,730,000.*minilab data"
        ):
            read()


def test_a_label_over_9_is_named(here):
    write_files(here, data_batch_5={77: [10]})
    with pytest.raises(ValueError, match=r"data_batch_5.bin has the label 10 in record 77; allowed: 0 to 9"):
        cifar10()


def test_without_the_folder_and_without_fetching_it_says_where_it_looked(here):
    with pytest.raises(FileNotFoundError, match=rf"{here}.*does not exist; run `minilab data`"):
        cifar10(download=False)


def test_the_root_is_the_argument_else_the_environment_else_the_cache(here, monkeypatch, tmp_path):
    assert data_root(tmp_path) == tmp_path
    assert data_root() == here
    monkeypatch.delenv("MINILAB_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "minilab"
    assert data_root("~/x") == tmp_path / "x"


# Choosing


def test_default_falls_to_shapes_with_one_line(here, monkeypatch, capsys):
    def no_network(*arguments, patience):
        assert patience <= 5
        raise OSError("no network")

    monkeypatch.setattr(data, "fetch", no_network)
    monkeypatch.setattr(data, "shapes", lambda: "the shapes")
    assert open_images("auto") == "the shapes"
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "using Shapes" in out


def test_default_takes_what_is_on_disk(here, capsys):
    write_files(here)
    assert default().name == "CIFAR-10 (unverified copy)"
    assert capsys.readouterr().out == ""


def test_images_are_opened_by_name(here, monkeypatch):
    monkeypatch.setattr(data, "cifar10", lambda root: f"CIFAR-10 in {root}")
    assert open_images("cifar10", here) == f"CIFAR-10 in {here}"
    monkeypatch.setattr(data, "shapes", lambda: "the shapes")
    assert open_images("shapes") == "the shapes"
    with pytest.raises(ValueError, match=r"^data is 'imagenet'; allowed: auto, cifar10, shapes$"):
        open_images("imagenet")
