"""Small inputs are answered soon: what is done for a part of a config does not grow with the number of its faults."""

from __future__ import annotations

import difflib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contourpy
import fontTools.ttLib
import numpy as np
import pytest
from PIL import Image, ImageFile
from support import bombs
from support.processes import bounded

import gerd
from gerd.bounds import MOST_ACTORS
from gerd.config import actor
from gerd.config.config import Config
from gerd.geometry import shapes, svg
from gerd.reading import reading

Count = Callable[[Any, str], list[Any]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Lists the calls of a function from now on."""

    def counted(owner: Any, name: str) -> list[Any]:
        made: list[Any] = []
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *arguments, **named: made.append(1) or real(*arguments, **named))
        return made

    return counted


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(gerd.ConfigError) as error:
        gerd.parse(json.dumps(config))
    return str(error.value)


def test_few_of_many_misspelt_words_are_compared_with_the_right_ones(calls: Count) -> None:
    compared = calls(difflib, "get_close_matches")
    wrong = {f"shap{number}": 1 for number in range(300)}
    assert "did you mean shape?" in refused({"actors": [{"shape": "square", **wrong}] * 3})
    assert "allowed: square, circle" in refused({"actors": [{"shape": wrong}]})
    assert len(compared) <= 40
    assert "unknown key; allowed: " in refused({"x" * 1000: 1, "actors": []})
    assert len(compared) <= 40


def test_many_faults_of_one_list_are_told_soon(tmp_path: Path) -> None:
    """Each of them is looked up in what was written, without going through the list."""
    (tmp_path / "zeros.yaml").write_text(f"actors: [{{shape: {{choice: [{'0, ' * 60_000}]}}}}]\n")
    result = bounded(tmp_path, "check", "zeros.yaml", gigabytes=3, seconds=30)
    assert (result.returncode, "and 59950 more problems" in result.stderr) == (2, True), result.stderr


def test_too_many_actors_are_not_looked_at(calls: Count) -> None:
    looked_at = calls(shapes, "outline"), calls(difflib, "get_close_matches")
    assert "at most 64 items, not 5000" in refused({"actors": [{"shpe": "sqare"}] * 5000})
    assert looked_at == ([], [])
    assert len(gerd.parse(json.dumps({"actors": [{"shape": "square"}] * MOST_ACTORS})).actors) == MOST_ACTORS


def test_a_font_is_read_once_for_all_texts(calls: Count) -> None:
    opened, drawn = calls(fontTools.ttLib, "TTFont"), calls(fontTools.pens.recordingPen, "DecomposingRecordingPen")
    letters = "ЖЗИЙКЛМНОП"  # that no other test has drawn before
    texts = [{"text": one + other} for one in letters for other in letters[:6]]
    config = Config.model_validate({"actors": [{"shape": "square"}], "sweep": {"actors.0.shape": texts}})
    assert len(config.sweep["actors.0.shape"]) == 60
    assert len(opened) <= 1  # another test may have read it
    assert len(drawn) == 10


def test_more_values_than_can_be_read_soon_are_refused() -> None:
    assert "at most 100000 are allowed" in refused({"actors": [], "x": [0] * 100_000})


def test_a_path_with_too_many_vertices_is_not_drawn_to_its_end(calls: Count) -> None:
    halved = calls(shapes, "pairwise")  # three times for a point of a cubic curve
    assert "too many vertices" in refused({"actors": [{"shape": {"svg": "M0 0" + "C1 1 2 2 3 0Z" * 3000}}]})
    assert len(halved) <= 3 * shapes.MOST_VERTICES


# Outlines that are used often


@pytest.mark.parametrize("good", [True, False])
def test_a_path_that_stands_a_thousand_times_is_drawn_once(good: bool, calls: Count) -> None:
    drawn = calls(svg, "commands_of_path")
    text = bombs.repeated_path(1000, good)
    if good:
        config = gerd.parse(text)
        assert len(config.sweep["actors.0.shape"]) == 1000
        assert [config.member(number).digest for number in (3, 999)] == [config.member(0).digest] * 2
    else:
        with pytest.raises(gerd.ConfigError, match=r"actors\.0\.shape\.svg: .*encloses no area"):
            gerd.parse(text)
    assert len(drawn) <= 2  # the actor's own is another one


def test_outlines_of_one_content_have_names_of_their_own() -> None:
    shape = {"svg": "M0 0 L1 0 L1 1 Z"}
    config = Config(actors=[{"shape": {"choice": [shape, {**shape, "name": "a"}, {**shape, "name": "b"}]}}])
    assert config.actors[0].shape_names == ("polygon 0", "a", "b")
    assert len(set(config.actors[0].rings)) == 1


def picture(path: Path, side: int, **options: Any) -> bytes:
    """A light square on a dark ground."""
    pixels = np.pad(np.full((side // 2, side // 2), 255, np.uint8), side // 4)
    Image.fromarray(pixels).save(path, **options)
    return path.read_bytes()


def test_a_picture_that_stands_many_times_is_read_once(calls: Count, tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 16)
    opened = calls(shapes, "read_regular")
    choice = {"choice": [{"mask": "a.png"}] * 300 + [{"mask": "a.png", "invert": True}]}
    config = gerd.parse(json.dumps({"actors": [{"shape": choice}]}), directory=tmp_path)
    assert len(set(config.actors[0].rings)) == 2
    assert len(opened) == 2


def test_all_pictures_together_have_so_many_pixels(calls: Count, tmp_path: Path) -> None:
    work = 5 * (64 * 64 // shapes.PIXELS_OF_WORK + 4 * 32 * actor.VERTEX_WORK) + 200
    decoded = calls(ImageFile.ImageFile, "load")
    for number in range(8):
        picture(tmp_path / f"{number}.png", 64)
    shape = {"choice": [{"mask": f"{number}.png"} for number in range(8)]}
    message = r"choice\.5\.mask: got '5\.png': takes too long to read; allowed, all "
    with pytest.raises(gerd.ConfigError, match=message), reading(work):
        gerd.parse(json.dumps({"actors": [{"shape": shape}]}), directory=tmp_path)
    assert len(decoded) == 5
    shape["choice"] = shape["choice"][3:]
    with reading(work):
        assert len(gerd.parse(json.dumps({"actors": [{"shape": shape}]}), directory=tmp_path).actors[0].rings) == 5


def test_a_picture_of_many_scans_is_not_decoded(calls: Count, tmp_path: Path) -> None:
    decoded = calls(ImageFile.ImageFile, "load")
    picture(tmp_path / "usual.jpg", 64, progressive=True)
    (tmp_path / "bomb.jpg").write_bytes(bombs.scans(64, 30_000))
    assert len(gerd.parse("actors: [{shape: {mask: usual.jpg}}]", directory=tmp_path).actors) == 1
    with pytest.raises(gerd.ConfigError, match=rf"has 300\d\d scans; at most {shapes.MOST_SCANS} are allowed"):
        gerd.parse("actors: [{shape: {mask: bomb.jpg}}]", directory=tmp_path)
    assert len(decoded) == 1
    with Image.open(io.BytesIO(bombs.scans(64, 50))) as sound:  # it is a picture, and no damaged file
        assert np.asarray(sound).max() > 200


def test_a_picture_of_noise_has_too_many_vertices_to_be_followed(calls: Count, tmp_path: Path) -> None:
    followed = calls(contourpy, "contour_generator")
    noise = np.random.default_rng(0).random((300, 300)) > 0.5
    Image.fromarray(noise).convert("L").save(tmp_path / "noise.png")
    with pytest.raises(gerd.ConfigError, match="has too many vertices"):
        gerd.parse("actors: [{shape: {mask: noise.png}}]", directory=tmp_path)
    assert not followed
    small = np.zeros((5, 5), np.uint8)
    small[1:3, 1:3] = 255
    Image.fromarray(small).save(tmp_path / "small.png")
    # a vertex between each two neighbours that differ, and no more
    assert len(shapes.rings_of_mask(tmp_path / "small.png", most=8)[0]) == 8
    with pytest.raises(ValueError, match="has too many vertices"):
        shapes.rings_of_mask(tmp_path / "small.png", most=7)


# Members


@pytest.mark.parametrize("keep", ["", "time_scale: {factor: 2, keep: path}\n"])
def test_a_grid_is_refused_before_its_members_are_made(keep: str, tmp_path: Path) -> None:
    """Half a minute of work and more, from five kilobytes of text."""
    (tmp_path / "grid.yaml").write_text(keep + bombs.grid(300))
    result = bounded(tmp_path, "check", "grid.yaml", gigabytes=3, seconds=20)
    assert result.returncode == 2, result.stderr
    assert "sweep: " in result.stderr
    assert "makes 90000 members, which takes too long to read; allowed, all in all, are about" in result.stderr


def test_members_are_not_made_once_they_cost_too_much(calls: Count) -> None:
    made = calls(Config, "with_values")
    assert len(gerd.parse(bombs.grid(12)).sweep) == 2
    assert len(made) == 12 + 12 + 144
    message = "makes 144 members, which takes too long to read"
    with pytest.raises(gerd.ConfigError, match=message), reading(40_000):
        gerd.parse(bombs.grid(12))
    assert len(made) == 12 + 12 + 144


def test_what_lies_beside_a_swept_value_is_paid_for_with_each_member() -> None:
    """A name beside a polygon: the vertices are checked again for each of its values."""
    work = 50_000
    ring = [[np.cos(i / 200), np.sin(i / 200)] for i in range(1200)]
    config = {"actors": [{"shape": {"polygon": ring, "name": "a"}}], "sweep": {"actors.0.shape.name": list("abcdefgh")}}
    with reading(work):
        assert "makes 8 members, which takes too long to read" in refused(json.loads(json.dumps(config)))
    config["sweep"] = {"actors.0.rotation.velocity": [1, 2, 3, 4, 5, 6, 7, 8]}
    with reading(work):
        assert len(gerd.parse(json.dumps(config)).sweep) == 1


def test_a_config_is_read_as_a_whole_again_after_one_that_was_refused() -> None:
    for _ in range(2):
        refused(json.loads(json.dumps({"actors": [], "sweep": {"noise.background": [0.5] * 40_000}})))
        assert gerd.parse("actors: []").actors == ()
