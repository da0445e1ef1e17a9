"""Folders and object stores: the same bytes everywhere, whole files only, and errors that name the file.

The object stores are fsspec's own in memory and, where s3fs and moto are installed, an S3 server on this machine.
"""

from __future__ import annotations

import os
import pickle
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.datasets import SMALL, faults
from support.processes import run_here

import gerd
from gerd.storage.manifest import MANIFEST, shard_name
from gerd.storage.places import Bucket, Folder, MissingError, Place, place_at

PAIRS = SMALL + "sweep: {time_scale: [0.5, 2]}\n"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A bucket of an S3 server on this machine."""
    server = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    account = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**account, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem().mkdir("bucket")
        yield "s3://bucket"
    running.stop()


@pytest.fixture(params=["folder", "file", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a dataset can be, as a user writes it."""
    if request.param == "s3":
        return f"{request.getfixturevalue('s3')}/some/{uuid.uuid4()}"
    pytest.importorskip("fsspec")
    places = {
        "folder": f"{tmp_path}/data",
        "file": f"file://{tmp_path}/data",
        "memory": f"memory://{uuid.uuid4()}/data",
    }
    return places[request.param]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "local"
    gerd.generate(gerd.parse(PAIRS), folder, 70, workers=1)
    return folder


def content(place: Place) -> dict[str, bytes]:
    return {name: place.read(name) for name in place.names()}


def test_the_place_does_not_show(place: str, local: Path) -> None:
    """Made whole, grown, made in parts, continued, read in any order, verified."""
    config, wanted = gerd.parse(PAIRS), content(Folder(local))
    gerd.generate(config, place, 40, workers=1)
    data = gerd.generate(config, place, 70, workers=1)
    assert content(data.place) == wanted
    assert faults(place) == []
    expected = gerd.Recordings(local)
    for position in (139, 0, 64, 63, 5):
        assert data[position].digest == expected[position].digest
        assert data.window(position, 1, 3).events.tolist() == expected.window(position, 1, 3).events.tolist()
    assert pickle.loads(pickle.dumps(data))[70].digest == expected[70].digest
    data.place.remove(shard_name(1))
    data.place.write(shard_name(2), b"half")
    assert any(line.startswith(f"{data.place.at(shard_name(1))}: is missing") for line in faults(place))
    for part in ((2, 2), (1, 2)):
        gerd.generate(config, place, 70, workers=1, part=part)
    assert content(data.place) == wanted


def test_parts_in_any_place(place: str, local: Path) -> None:
    config = gerd.parse(PAIRS)
    complete = [gerd.generate(config, place, 70, workers=1, part=(i, 3)).manifest.complete for i in (3, 1, 2)]
    assert complete == [False, False, True]
    assert content(place_at(place)) == content(Folder(local))


def test_a_different_dataset_is_refused_in_any_place(place: str) -> None:
    config = gerd.parse(PAIRS)
    gerd.generate(config, place, 2, workers=1)
    with pytest.raises(gerd.StorageError, match="count is 2 there and 1 here"):
        gerd.generate(config, place, 1, workers=1)
    store = place_at(place)
    store.remove(MANIFEST)
    with pytest.raises(gerd.StorageError, match="holds files that are not a GERD dataset"):
        gerd.generate(config, place, 1, workers=1)


def test_what_is_missing_is_named_in_any_place(place: str) -> None:
    store = place_at(place)
    assert store.names() == set()
    assert not store.exists()
    for read in (store.read, store.open):
        with pytest.raises(MissingError) as error:
            read("file")
        assert str(error.value) == f"{store.at('file')}: is missing"
    with pytest.raises(gerd.StorageError, match="there is no such dataset"):
        gerd.Recordings(place)
    store.remove("file")
    store.tidy()


def test_ranges_are_read_whole(place: str) -> None:
    """Across the pieces in which an object store is read, and more of them than are kept."""
    store = place_at(place)
    if isinstance(store, Bucket):
        store = replace(store, piece=100)
    data = bytes(range(256)) * 8
    with store.claimed(alone=True):
        store.write("file", data)
    file = store.open("file")
    assert (file.size, file.name) == (len(data), store.at("file"))
    for start, stop in ((0, 0), (0, 1), (99, 101), (100, 200), (0, len(data)), (1999, 2048), (2048, 2048), (150, 1500)):
        assert file.read(start, stop) == data[start:stop], (start, stop)
    with pytest.raises(gerd.StorageError, match="ends too early"):
        file.read(2000, 2100)
    file = store.open("file")
    if isinstance(store, Folder):
        os.truncate(store.at("file"), 5)
    else:
        store.write("file", b"short")
    with pytest.raises(gerd.StorageError, match=r"file: (is damaged: it ends too early|cannot be read)"):
        file.read(1000, 2048)


@pytest.mark.parametrize("place", ["s3:/", "s3://", "memory:///", "ftp://host/data", "http://host/data", "S3://b/c"])
def test_other_places_are_refused(place: str) -> None:
    if "://" not in place:
        assert isinstance(place_at(place), Folder)
        return
    with pytest.raises(gerd.StorageError, match="allowed: a folder, file://…, s3://…"):
        place_at(place)


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adlfs", None)
    pytest.importorskip("fsspec")
    with pytest.raises(gerd.StorageError, match=r"pip install 'gerd-events\[cluster\]' adlfs"):
        gerd.Recordings("az://bucket/data")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(gerd.StorageError, match=r"pip install 'gerd-events\[cluster\]' fsspec"):
        gerd.Recordings("memory://data")


def test_an_object_that_is_too_large_is_not_read() -> None:
    pytest.importorskip("fsspec.implementations.memory")
    store = Bucket(f"memory://{uuid.uuid4()}", largest=6)
    store.write("file", b"content")
    with pytest.raises(gerd.StorageError, match="file: has 7 bytes; at most 6 are read"):
        store.read("file", most=6)
    assert store.read("file", 0, 6) == b"conten"


def test_what_a_store_says_reaches_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever error of its own the driver has."""
    memory = pytest.importorskip("fsspec.implementations.memory")
    store = Bucket(f"memory://{uuid.uuid4()}")
    store.write("file", b"content")

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("access denied\nand more")

    for operation, call in (
        ("pipe_file", lambda: store.write("file", b"")),
        ("cat_file", lambda: store.read("file")),
        ("ls", store.names),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(memory.MemoryFileSystem, operation, refuse)
            with pytest.raises(gerd.StorageError, match=r"^memory://.*: cannot be \w+: access denied$"):
                call()


def test_a_store_in_memory_is_not_shared_with_workers(local: Path) -> None:
    pytest.importorskip("fsspec")
    data = gerd.generate(gerd.parse(PAIRS), f"memory://{uuid.uuid4()}", 70, workers=4)
    assert content(data.place) == content(Folder(local))


def test_an_object_store_on_the_command_line(
    s3: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers in processes of their own write to it; then it is read here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(PAIRS)
    place = f"{s3}/{uuid.uuid4()}"
    for words, expected in (
        (["generate", "small.yaml", place, "-n", "70", "--workers", "2"], f"{place}: 140 recordings in 3 shards"),
        (["info", place], f"dataset     {place}, complete"),
        (["verify", place], f"{place}: 140 recordings, all sound"),
    ):
        assert run_here(*words) == 0
        assert capsys.readouterr().out.startswith(expected)
    assert run_here("generate", "small.yaml", "s3://nowhere/x") == 1
    assert "error: s3://nowhere/x/manifest.json: cannot be written: " in capsys.readouterr().err
