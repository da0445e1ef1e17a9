"""Cards of datasets: what programs of others make of them."""

from __future__ import annotations

import json
from pathlib import Path

import mlcroissant
import pytest
import yaml
from support.processes import run_here

import gerd
from gerd.errors import GerdError, StorageError
from gerd.exchange.card import write_card

CONFIG = """
sensor: {width: 12, height: 10}
steps: 4
noise: {background: 0.05}
sweep: {time_scale: [1, 2]}
actors: [{shape: "square"}]
"""
FACTS = {
    "name": "Squares & more",
    "license": "CC-BY-4.0",
    "creators": ("A. Name", "B. Name"),
    "url": "https://example.org/squares",
    "published": "2026-11-19",
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cards") / "squares"
    gerd.generate(gerd.parse(CONFIG), folder, count=40)
    return folder


def test_croissant_is_valid_and_has_the_digest_of_every_recording(dataset: Path) -> None:
    _, file = write_card(dataset, **FACTS, replace=True)  # type: ignore[arg-type]
    read = mlcroissant.Dataset(str(file))  # an error if anything that Croissant wants is wrong
    assert read.metadata.ctx.issues.report() == ""  # nor does it recommend anything else
    assert read.metadata.name == "Squares & more"
    assert read.metadata.personal_sensitive_information == ["None: geometric shapes."]
    data = gerd.Recordings(dataset)
    rows = [row["recordings/digest"].decode() for row in read.records("recordings")]
    assert rows == [recording.digest for recording in data]
    assert len(rows) == 80


def test_every_file_is_listed_with_its_digest(dataset: Path) -> None:
    write_card(dataset, **FACTS, replace=True)  # type: ignore[arg-type]
    listed = json.loads((dataset / "croissant.json").read_text("utf-8"))["distribution"]
    files = {file.name for file in dataset.iterdir()} - {"README.md", "croissant.json"}
    assert {entry["contentUrl"] for entry in listed} == {name for name in files if not name.startswith(".")}
    assert run_here("verify", str(dataset)) == 0  # the card is no part of the dataset, and does not harm it


def test_the_card_says_what_is_in_it(dataset: Path) -> None:
    card, _ = write_card(dataset, **FACTS, replace=True)  # type: ignore[arg-type]
    _, header, text = card.read_text("utf-8").split("---\n", 2)
    assert yaml.safe_load(header)["license"] == "cc-by-4.0"
    assert yaml.safe_load(header)["size_categories"] == ["n<1K"]
    assert "| Recordings | 80 (40 draws × 2 members) |" in text
    assert "| Swept | `time_scale`: 1, 2 |" in text
    again = gerd.parse(text.split("```yaml\n")[1].split("```")[0])
    assert again.digest == gerd.Recordings(dataset).config.digest


def test_what_is_there_is_not_replaced_unasked(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(StorageError, match=r"README\.md: is there already; allowed: --replace"):
        write_card(dataset, out=tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    assert not (tmp_path / "croissant.json").exists()


def test_mistakes(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(GerdError, match="published 'today': allowed: a day such as"):
        write_card(dataset, published="today", out=tmp_path)
    with pytest.raises(StorageError, match="there is no such dataset"):
        write_card(tmp_path / "nothing")
    with pytest.raises(StorageError, match="there is no folder"):
        write_card(dataset, out=tmp_path / "a" / "b")


def test_the_command(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = ("--by", "A", "--by", "B", "--license", "https://example.org/l")
    assert run_here("card", str(dataset), *facts, "--out", str(tmp_path)) == 0
    assert f"wrote {tmp_path / 'README.md'} and {tmp_path / 'croissant.json'}" in capsys.readouterr().out
    said = json.loads((tmp_path / "croissant.json").read_text("utf-8"))
    assert [creator["name"] for creator in said["creator"]] == ["A", "B"]
    assert said["license"] == "https://example.org/l"
    assert said["name"] == "squares"
