"""Recipes: the same dataset from a small file, or an error that says what is different."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes import run_here

import gerd
from gerd.errors import StorageError
from gerd.storage.recipe import make, read_recipe, write_recipe

TEXT = """\
# squares at two speeds
sensor: {width: 12, height: 10}
steps: 4
noise: {background: 0.05}
sweep: {time_scale: [1, 2]}
actors: [{shape: "square"}]
"""
COUNT = 40  # of two members: two shards


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipes") / "squares"
    gerd.generate(gerd.parse(TEXT), folder, count=COUNT, workers=1)
    return folder


@pytest.fixture(scope="module")
def recipe(dataset: Path) -> Path:
    file = dataset.with_name("squares.json")
    write_recipe(dataset, file)
    return file


def test_the_dataset_is_made_again_file_by_file(dataset: Path, recipe: Path, tmp_path: Path) -> None:
    made = make(recipe, tmp_path / "again", workers=1)
    assert len(made) == 2 * COUNT
    names = {file.name for file in dataset.iterdir() if not file.name.startswith(".")}
    assert len(names) == 5
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (dataset / name).read_bytes(), name
    assert recipe.stat().st_size < 20_000


def test_making_goes_on_where_it_was_stopped(recipe: Path, dataset: Path, tmp_path: Path) -> None:
    class Stop(Exception):  # noqa: N818
        pass

    def stop(_: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        make(recipe, tmp_path / "again", workers=1, progress=stop)
    make(recipe, tmp_path / "again", workers=1)
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (dataset / "manifest.json").read_bytes()


def changed(recipe: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The recipe with another manifest."""
    content = json.loads(recipe.read_text("utf-8"))
    manifest = json.loads(content["files"]["manifest.json"])
    change(manifest)
    content["files"]["manifest.json"] = json.dumps(manifest)
    file = folder / "changed.json"
    file.write_text(json.dumps(content), "utf-8")
    return file


def test_another_dataset_is_told(recipe: Path, tmp_path: Path) -> None:
    def other_events(manifest: dict[str, Any]) -> None:
        manifest["shards"][1]["recordings"][3] = "0" * 64
        manifest["code_digest"] = "f" * 64

    def other_truth(manifest: dict[str, Any]) -> None:
        manifest["shards"][0]["sha256"] = "0" * 64

    with pytest.raises(StorageError) as error:
        make(changed(recipe, tmp_path, other_events), tmp_path / "events", workers=1)
    assert "recording 67 has other events. It is of gerd " in str(error.value)
    assert "code ffffffffffff; here is code" in str(error.value)
    with pytest.raises(StorageError, match=r"shard-000000\.safetensors: the ground truth is another"):
        make(changed(recipe, tmp_path, other_truth), tmp_path / "truth", workers=1)


def unfinished(manifest: dict[str, Any]) -> None:
    manifest["shards"].pop()


def shorter(manifest: dict[str, Any]) -> None:
    manifest["shards"][0]["recordings"].pop()


def other_config(manifest: dict[str, Any]) -> None:
    manifest["files"]["resolved.json"] = "0" * 64


def more_members(manifest: dict[str, Any]) -> None:
    manifest["members"] = 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (unfinished, "does not list the 80 recordings"),
        (shorter, "does not list the 80 recordings"),
        (more_members, "does not list the 120 recordings"),
        (other_config, "resolved.json: differs from the sha256 in the manifest"),
        (lambda manifest: manifest.update(format="other"), "is not the manifest of a GERD dataset"),
    ],
)
def test_a_recipe_that_contradicts_itself_is_refused(
    change: Callable[[dict[str, Any]], None], message: str, recipe: Path, tmp_path: Path
) -> None:
    file = changed(recipe, tmp_path, change)
    with pytest.raises(StorageError) as error:
        make(file, tmp_path / "out")
    assert message in str(error.value)
    assert str(file) in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": "gerd recipe"}', '{"a": 1, "a": 2}', "[" * 10**5, "\xff"]
)
def test_what_is_no_recipe_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content.encode("latin1"))
    with pytest.raises(StorageError, match=r"x\.json: is no recipe"):
        read_recipe(file)


def test_only_a_whole_dataset_has_a_recipe(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no such dataset"):
        write_recipe(tmp_path / "nothing", tmp_path / "x.json")
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        read_recipe(tmp_path / "x.json")


def test_the_commands(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "r.json", tmp_path / "again"
    assert run_here("recipe", str(dataset), str(file)) == 0
    assert run_here("make", str(file), str(out), "--workers", "1") == 0
    said = capsys.readouterr().out
    assert "for 80 recordings" in said
    assert f"{out}: 80 recordings, the same as those that {file} was written for" in said
