import functools
import hashlib
import http.server
import io
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from masktune.data.download import fetch, unpack_gzip, unpack_tar
from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; /short promises more than it sends."""

    asked: ClassVar = []

    def do_GET(self):
        self.asked.append(self.path)
        if self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"only this")
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def web(tmp_path):
    """Give a folder and the address it is served at."""
    folder = tmp_path / "web"
    folder.mkdir()
    Quiet.asked.clear()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_a_file_arrives_whole_and_progress_counts_megabytes(web, tmp_path):
    folder, address = web
    content = bytes(range(256)) * 10_000  # 2,560,000 bytes: 3 megabytes, rounded up
    (folder / "a.bin").write_bytes(content)
    heard = []

    path = fetch(
        f"{address}/a.bin", to=tmp_path / "new" / "a.bin", md5=md5(content), watcher=heard.append
    )

    assert path.read_bytes() == content
    assert [(p.stage, p.done, p.total) for p in heard] == [("download", n, 3) for n in (1, 2, 3)]
    assert [file.name for file in path.parent.iterdir()] == ["a.bin"]


def test_the_file_on_the_disk_is_checked_not_what_the_server_sent(web, tmp_path):
    folder, address = web
    content = bytes(range(256)) * 10_000
    (folder / "a.bin").write_bytes(content)

    def spoil(_):
        for part in (tmp_path / "new").glob(".*"):  # as a second writer would
            with part.open("r+b") as file:
                file.write(bytes(1000))

    with pytest.raises(DataError, match="not the expected file"):
        fetch(f"{address}/a.bin", to=tmp_path / "new" / "a.bin", md5=md5(content), watcher=spoil)

    assert list((tmp_path / "new").iterdir()) == []


def test_two_sessions_that_want_one_file_fetch_it_once(web, tmp_path):
    folder, address = web
    content = bytes(range(256)) * 20_000
    (folder / "a.bin").write_bytes(content)

    def slowly(_):
        time.sleep(0.02)  # so that all four are there before the first has finished

    with ThreadPoolExecutor(4) as pool:
        paths = list(
            pool.map(
                lambda _: fetch(
                    f"{address}/a.bin", to=tmp_path / "a.bin", md5=md5(content), watcher=slowly
                ),
                range(4),
            )
        )

    assert {path.read_bytes() for path in paths} == {content}
    assert Quiet.asked == ["/a.bin"]


def test_what_is_there_is_not_fetched_again(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"here")

    assert fetch("http://127.0.0.1:9/a.bin", to=tmp_path / "a.bin").read_bytes() == b"here"


def test_another_content_is_refused_and_nothing_is_left(web, tmp_path):
    folder, address = web
    (folder / "a.bin").write_bytes(b"something else")

    with pytest.raises(DataError, match="not the expected file"):
        fetch(f"{address}/a.bin", to=tmp_path / "new" / "a.bin", md5=md5(b"right"))

    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("path", ["missing.bin", "short"])
def test_a_server_that_fails_is_explained_and_nothing_is_left(web, tmp_path, path):
    _, address = web

    with pytest.raises(DataError, match="cannot be downloaded") as caught:
        fetch(f"{address}/{path}", to=tmp_path / "new" / "a.bin")

    assert f"{address}/{path}" in caught.value.problem
    assert list((tmp_path / "new").iterdir()) == []


def test_without_a_network_the_remedy_is_a_folder(tmp_path):
    # Port 9 of this machine answers nobody.
    with pytest.raises(DataError, match="cannot be downloaded") as caught:
        fetch("http://127.0.0.1:9/a.bin", to=tmp_path / "a.bin")

    assert "--root" in caught.value.remedy


def test_a_file_of_this_machine_is_not_fetched(tmp_path):
    (tmp_path / "secret").write_text("x")

    with pytest.raises(DataError, match="not a web address"):
        fetch((tmp_path / "secret").as_uri(), to=tmp_path / "a.bin")


def test_stopping_leaves_nothing(web, tmp_path):
    folder, address = web
    (folder / "a.bin").write_bytes(b"x")

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(f"{address}/a.bin", to=tmp_path / "new" / "a.bin", watcher=stop)

    assert list((tmp_path / "new").iterdir()) == []


def test_a_full_disk_is_explained(web, tmp_path, full_disk):
    folder, address = web
    (folder / "a.bin").write_bytes(bytes(5000))

    with full_disk(), pytest.raises(DataError, match="cannot be written") as caught:
        fetch(f"{address}/a.bin", to=tmp_path / "new" / "a.bin")

    assert "MASKTUNE_HOME" in caught.value.remedy
    assert list((tmp_path / "new").iterdir()) == []


def tar(path, name, content=b"x"):
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return path


def test_a_tar_file_is_unpacked(tmp_path):
    archive = tar(tmp_path / "a.tar.gz", "folder/a.txt", b"hello")

    folder = unpack_tar(archive, member="folder", into=tmp_path / "new")

    assert (folder / "a.txt").read_bytes() == b"hello"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]


@pytest.mark.parametrize("name", ["../escaped.txt", "{}/escaped.txt", "other/a.txt"])
def test_a_tar_file_that_leads_out_or_holds_something_else_leaves_nothing(tmp_path, name):
    archive = tar(tmp_path / "a.tar.gz", name.format(tmp_path))

    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack_tar(archive, member="folder", into=tmp_path / "new")

    assert list((tmp_path / "new").iterdir()) == []
    assert not (tmp_path / "escaped.txt").exists()


@pytest.mark.parametrize(
    "unpack",
    [
        lambda archive: unpack_tar(archive, member="folder", into=archive.parent),
        lambda archive: unpack_gzip(archive, to=archive.parent / "a"),
    ],
    ids=["tar", "gzip"],
)
def test_a_broken_archive_is_explained(tmp_path, unpack):
    archive = tmp_path / "a.gz"
    archive.write_bytes(b"no archive")

    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(archive)

    assert list(tmp_path.iterdir()) == [archive]


def test_cifar10_is_downloaded_unpacked_and_read(web, own_home, monkeypatch):
    from torchvision.datasets import CIFAR10

    folder, address = web
    source = layouts.cifar10(folder / "source")
    with tarfile.open(folder / CIFAR10.filename, "w:gz") as archive:
        archive.add(source / CIFAR10.base_folder, CIFAR10.base_folder)
    monkeypatch.setattr(CIFAR10, "url", f"{address}/{CIFAR10.filename}")
    monkeypatch.setattr(CIFAR10, "tgz_md5", md5((folder / CIFAR10.filename).read_bytes()))
    heard = []

    bundle = load("cifar10", watcher=heard.append)

    assert len(bundle.train) == 80
    assert heard[0].stage == "download"
    assert [path.name for path in (own_home / "data").iterdir()] == [CIFAR10.base_folder]


def test_four_sessions_that_want_cifar10_download_and_unpack_it_once(web, own_home, monkeypatch):
    from torchvision.datasets import CIFAR10

    folder, address = web
    source = layouts.cifar10(folder / "source")
    with tarfile.open(folder / CIFAR10.filename, "w:gz") as archive:
        archive.add(source / CIFAR10.base_folder, CIFAR10.base_folder)
    monkeypatch.setattr(CIFAR10, "url", f"{address}/{CIFAR10.filename}")
    monkeypatch.setattr(CIFAR10, "tgz_md5", md5((folder / CIFAR10.filename).read_bytes()))

    with ThreadPoolExecutor(4) as pool:
        sizes = list(pool.map(lambda _: len(load("cifar10").train), range(4)))

    assert sizes == [80] * 4
    assert Quiet.asked == [f"/{CIFAR10.filename}"]


def test_svhn_is_downloaded_and_read(web, own_home, monkeypatch):
    from torchvision.datasets import SVHN

    folder, address = web
    layouts.svhn(folder)
    parts = {
        part: [f"{address}/{name}", name, md5((folder / name).read_bytes())]
        for part, name in (("train", "train_32x32.mat"), ("test", "test_32x32.mat"))
    }
    monkeypatch.setattr(SVHN, "split_list", parts)

    assert len(load("svhn").train) == 40
    assert len(list((own_home / "data" / "svhn").iterdir())) == 2


@pytest.mark.parametrize(("key", "size"), [("mnist", 80), ("biased-mnist", 80)])
def test_mnist_is_downloaded_from_the_next_mirror_where_one_is_gone(
    web, own_home, monkeypatch, key, size
):
    from torchvision.datasets import MNIST

    folder, address = web
    raw = layouts.mnist(folder, packed=True) / "MNIST" / "raw"
    files = [(name, md5((raw / name).read_bytes())) for name, _ in MNIST.resources]
    monkeypatch.setattr(MNIST, "mirrors", [f"{address}/gone/", f"{address}/MNIST/raw/"])
    monkeypatch.setattr(MNIST, "resources", files)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: len(load(key).train), range(2))) == [size, size]

    assert len(list((own_home / "data" / "MNIST" / "raw").glob("*-ubyte"))) == 4
    assert not list((own_home / "data" / "MNIST" / "raw").glob("*.gz"))
