"""The gallery: each picture is up to date, shows what the paper says of it, and has config and command beside it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import drawings
import figures
import matplotlib
import numpy as np
import pytest
from PIL import Image

import gerd
from gerd.config.sweep import labels
from gerd.recording.recording import Recording

ROOT = Path(__file__).parents[2]
GALLERY = (ROOT / "docs" / "gallery.md").read_text("utf-8")
PAPER = {path.stem for path in (ROOT / "configs" / "paper").glob("*.yaml")}


def recording_of(name: str, member: int = 0) -> Recording:
    config = gerd.load(ROOT / "configs" / "paper" / f"{name}.yaml")
    return gerd.simulate(config, **labels(config, member))


def kept_contents(path: Path) -> str:
    with Image.open(path) as picture:
        return picture.text["Contents"]


@pytest.mark.parametrize("name", [*figures.FIGURES, *figures.EXAMPLES])
def test_the_pictures_are_up_to_date(name: str) -> None:
    kept = kept_contents(ROOT / "docs" / "figures" / f"{name}.png")
    assert figures.contents(figures.made(name)) == kept, "make the pictures again: python docs/figures.py"


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_the_drawings_are_up_to_date(name: str) -> None:
    kept = ROOT / "docs" / f"{name}.png"
    assert figures.contents(drawings.DRAWINGS[name]()) == kept_contents(kept), "run python docs/drawings.py"
    assert kept.stat().st_size < 60_000


def test_pictures_that_are_not_up_to_date_are_found() -> None:
    """A seed that is not the one in the config shows, and so does another title; another font does not."""
    file, kept = ROOT / "configs" / "paper" / "noise.yaml", kept_contents(ROOT / "docs" / "figures" / "noise.png")
    assert figures.contents(figures.noise(gerd.load(file, overrides=["seed=3"]))) != kept
    with matplotlib.rc_context({"font.family": "monospace", "font.size": 20}):
        drawn = figures.made("noise")
    assert figures.contents(drawn) == kept
    drawn.axes[0].set_title("old")
    assert figures.contents(drawn) != kept


def test_every_picture_is_in_the_gallery() -> None:
    assert set(figures.FIGURES) == PAPER
    kept = {path.stem for path in (ROOT / "docs" / "figures").iterdir()}
    assert kept == set(figures.FIGURES) | set(figures.EXAMPLES) == set(re.findall(r"\]\(figures/(\w+)\.png\)", GALLERY))
    assert sum(path.stat().st_size for path in (ROOT / "docs" / "figures").iterdir()) < 2_000_000
    for name in figures.FIGURES:
        assert f"[Its config](../configs/paper/{name}.yaml), `python docs/figures.py {name}`" in GALLERY
    for name, (file, options) in figures.EXAMPLES.items():
        words = [
            f"--{key.replace('_', '-')}" + (f" {value}" if value is not True else "") for key, value in options.items()
        ]
        assert f"\ngerd render configs/{file} {name}.png {' '.join(words)}\n" in GALLERY


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["figures.py", "upsampling", "--out", str(tmp_path / "new")])
    figures.main()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["upsampling.png"]
    monkeypatch.setattr(sys, "argv", ["figures.py", "nothing"])
    with pytest.raises(SystemExit):
        figures.main()
    assert "nothing: there is no such picture; there are pipeline, scaling" in capsys.readouterr().err


def test_the_figure_of_voltmeter_takes_a_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.txt"
    file.write_text("900 3 4 1\n1000 5 4 0\n1000 6 4 0\n")
    drawn = figures.made("voxels", file)
    assert drawn.axes[0].get_title() == "(a) DVS-Voltmeter: 3 events,\n2 different times"
    assert len(drawn.axes[0].collections[-1].get_offsets()) == 3
    for wrong, message in {"900 3 4 1\n1000 500 4 0\n": "x 500, y 4", "time x y\n": "begins with b'time x y"}.items():
        file.write_text(wrong)
        monkeypatch.setattr(sys, "argv", ["figures.py", "voxels", "--voltmeter", str(file), "--out", str(tmp_path)])
        with pytest.raises(SystemExit):
            figures.main()
        said = capsys.readouterr().err
        assert str(file) in said
        assert message in said.split(str(file))[1]
    assert not (tmp_path / "voxels.png").exists()


# What the paper says of its figures


def test_pipeline() -> None:
    """Three consecutive frames, a constant vertical translation of 3 px, 5 % of each noise."""
    recording = recording_of("pipeline")
    np.testing.assert_allclose(np.diff(recording.positions[:, 0], axis=0), [[0, 3], [0, 3]])
    noise = recording.config.noise
    assert (noise.shape, noise.event, noise.background) == (0.05, 0.05, 0.05)
    stages = recording.stages()
    assert len(stages.steps) == 3
    assert (stages.seen != stages.coverage).any()
    assert (stages.kept != stages.fired).any()
    assert (stages.events != stages.kept).any()
    assert len(figures.SIX) == 6


def test_scaling() -> None:
    """Scaled down by 10 %, 5 % and 1 %; OFF events only, and the number follows the area that is lost."""
    recordings = [recording_of("scaling", member) for member in range(3)]
    for recording, factor in zip(recordings, (0.9, 0.95, 0.99), strict=True):
        before = recording.scene.trajectory[0, 0].parameters([-1.0])[0, 0, 2]
        np.testing.assert_allclose(50 / before, factor)
        assert not recording.events["p"].any()
        lost = np.pi / 4 * (before**2 - 50**2)
        assert 0.5 * lost < len(recording) < 2 * lost
    assert len(recordings[0]) > 2 * len(recordings[1]) > 4 * len(recordings[2])


def test_shapes() -> None:
    """(c) is positive where a shape has come to and negative where it has left; the tip lies between two rows."""
    recording = recording_of("shapes")
    np.testing.assert_allclose(np.diff(recording.positions, axis=0)[0], [[1, 0]] * 3)
    stages = recording.stages()
    for left, right in ((3, 12), (15, 24), (27, 36)):
        part = stages.difference[1, :, left:right]
        columns = part.sum(axis=0)
        assert part.sum() == 0
        assert columns[0] < 0 < columns[-1]
    tip = stages.coverage[0, :, 34] / stages.full
    assert np.flatnonzero(tip).tolist() == [5, 6]
    assert tip[5] == tip[6] == pytest.approx(1 / 4)


def test_upsampling() -> None:
    coarse, fine = (recording_of("upsampling", member).stages() for member in range(2))
    assert (coarse.picture.shape, fine.picture.shape) == ((1, 12, 12), (1, 96, 96))
    assert set(np.unique(coarse.picture)) == set(np.unique(fine.picture)) == {0, 1024}
    area = np.pi / 4 * 10.5**2  # a quarter of a circle of radius 10.5
    assert fine.coverage.sum() / fine.full == pytest.approx(area, rel=0.01)


def test_rotation() -> None:
    recording = recording_of("rotation")
    assert recording.steps == 10
    tip = (recording.T[:, 0] @ [0.5, 0, 1])[:, :2] - recording.positions[:, 0]
    assert (np.diff(tip[:, 1]) > 0).all()  # y points down: from the right downwards is clockwise
    np.testing.assert_allclose(np.hypot(*tip.T), 16)


def test_noise() -> None:
    """A square scaled by two pixels, with 10 % of one noise each; shape noise gives OFF events inside, only."""
    background, shape, event = (recording_of("noise", member) for member in range(3))
    for recording, given in ((background, (0.1, 0, 0)), (shape, (0, 0.1, 0)), (event, (0, 0, 0.1))):
        scene = recording.scene
        assert (scene.pixel.background, scene.pixel.shape_noise, scene.pixel.event_noise) == given
        assert recording.parameters_velocity["scale_x"][0, 0] == 2
    assert background.background.sum() > 100
    off = shape.events[~shape.events["p"]]
    assert len(off) > 20
    assert ((off["x"] >= 10) & (off["x"] < 38) & (off["y"] >= 10) & (off["y"] < 38)).all()
    assert event.events["p"].all()
    stages = event.stages()
    assert 0.8 < stages.kept.sum() / stages.fired.sum() < 1


def test_voxels() -> None:
    recording = recording_of("voxels")
    np.testing.assert_allclose(np.diff(recording.positions[:, 0], axis=0), [[1, 0]] * 23)
    assert recording.step_us == 5000
    assert recording.background.any()
