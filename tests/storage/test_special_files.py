"""What lies under the name of a file of a dataset may be anything: a pipe, a device, a huge file, a link to them.

Readers refuse it at once, where they would wait for ever or fill the memory; and a dataset names no files of others.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.datasets import SMALL, make, noticed

import gerd
from gerd.storage.json_files import LARGEST_JSON, json_bytes
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, shard_name

SPECIAL: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "link to /dev/zero": lambda file: file.symlink_to("/dev/zero"),
    "link to a pipe": lambda file: (os.mkfifo(file.with_name("pipe")), file.symlink_to("pipe"))[1],
    "folder": Path.mkdir,
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("special") / "data"
    make(folder, SMALL, 3)
    return folder


@pytest.mark.parametrize("name", [MANIFEST, RESOLVED, CONFIG, shard_name(0)])
@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_plain_file_is_refused(kind: str, name: str, small: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(small, tmp_path / "data"))
    (data / name).unlink()
    SPECIAL[kind](data / name)
    why = "Is a directory" if kind == "folder" else "it is not a plain file"
    assert noticed(data)[0] == f"{data / name}: cannot be read: {why}"


@pytest.mark.parametrize(("kind", "why"), [("mask", "cannot be read as a picture: "), ("svg", "cannot be read: ")])
def test_a_drawing_that_is_no_plain_file_is_refused(kind: str, why: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "leaf.svg")
    (tmp_path / "config.yaml").write_text(f"actors: [{{shape: {{{kind}: leaf.svg}}}}]\n")
    with pytest.raises(gerd.ConfigError, match=f"{why}it is not a plain file"):
        gerd.load(tmp_path / "config.yaml")


def test_a_file_that_is_too_large_is_not_read(small: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(small, tmp_path / "data"))
    with open(data / MANIFEST, "wb") as file:
        file.truncate(2 * LARGEST_JSON)  # takes no room on the disk
    with pytest.raises(gerd.StorageError, match=f"it has {2 * LARGEST_JSON} bytes; at most "):
        gerd.Recordings(data)


def test_a_stored_config_names_no_files(small: Path, tmp_path: Path) -> None:
    """It would be opened by everybody who asks what the dataset holds."""
    from PIL import Image

    data = Path(shutil.copytree(small, tmp_path / "data"))
    Image.fromarray(np.pad(np.full((4, 4), 255, np.uint8), 2)).save(tmp_path / "leaf.png")
    resolved = json.loads((data / RESOLVED).read_text())
    resolved["actors"][0]["shape"] = {"mask": str(tmp_path / "leaf.png")}
    (data / RESOLVED).write_bytes(json_bytes(resolved))
    with pytest.raises(gerd.StorageError, match=r"resolved\.json: is damaged"):
        _ = gerd.Recordings(data).config


def test_a_config_with_a_mask_is_still_made_and_read(tmp_path: Path) -> None:
    from PIL import Image

    Image.fromarray(np.pad(np.full((4, 4), 255, np.uint8), 2)).save(tmp_path / "leaf.png")
    text = SMALL.replace("shape: square", "shape: {mask: leaf.png}") + "sweep: {time_scale: [1, 2]}\n"
    gerd.generate(gerd.parse(text, directory=tmp_path), tmp_path / "data", 2, workers=1)
    (tmp_path / "leaf.png").unlink()
    assert len(gerd.Recordings(tmp_path / "data")[3].config.actors) == 1


@pytest.mark.parametrize("name", [MANIFEST, RESOLVED])
def test_a_key_that_stands_twice_is_refused(name: str, small: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(small, tmp_path / "data"))
    (data / name).write_text((data / name).read_text().replace('"seed": 8', '"seed": 9, "seed": 8', 1))
    with pytest.raises(gerd.StorageError, match=rf"{name}: is damaged: it has the key 'seed' twice"):
        _ = gerd.Recordings(data).config
