"""Shapes and numbers of actors that are drawn for each recording, and what is known of an actor that is absent.

That all backends and the oracle see the same in such scenes is tested in tests/events, on random configs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from support.scenes import FALSE_ALARM, actor, config

import gerd
from gerd.config.config import Config
from gerd.exchange import truth_lines
from gerd.page.answers import Shelf, pack
from gerd.pictures.video import Layout
from gerd.scene.draw import draw
from gerd.storage.verify import verify

DRAWN = config(
    actor({"choice": ["circle", "square", {"text": "A"}]}, at="uniform", velocity=[0.7, 0.4], size=5.0, border="bounce")
    | {"repeat": {"uniform": [1, 3]}},
    actor("triangle", at=[5.0, 5.0], velocity=[0.5, 0.0], intensity={"uniform": [0.5, 1]}),
    noise={"background": 0.01},
)
MANY = np.arange(3000)


def with_first(**changes: Any) -> Config:
    """`DRAWN` with fields of its first entry replaced."""
    first, second = DRAWN.actors
    return DRAWN.model_copy(update={"actors": (type(first).model_validate({**dict(first), **changes}), second)})


def test_all_shapes_and_numbers_are_equally_likely() -> None:
    scenes = draw(DRAWN, MANY)
    numbers = scenes.present[:, :3].sum(axis=1)
    assert np.array_equal(np.sort(scenes.present[:, :3])[:, ::-1], scenes.present[:, :3])  # the first ones are there
    assert scenes.present[:, 3].all()
    for counts in (
        np.bincount(numbers, minlength=4)[1:],
        np.bincount(scenes.chosen[:, 0]),
        np.bincount(scenes.chosen[numbers == 3, 2]),
        np.bincount(3 * scenes.chosen[numbers > 1, 0] + scenes.chosen[numbers > 1, 1]),  # independent of each other
    ):
        assert scipy.stats.chisquare(counts).pvalue > FALSE_ALARM


def test_draws_do_not_depend_on_what_else_is_drawn() -> None:
    """Another number of shapes or of actors leaves all that there was as it was."""
    usual, more, alone = (draw(each, MANY[:50]) for each in (DRAWN, with_first(repeat=5), with_first(repeat=1)))
    for scenes, kept, places in ((more, [0, 1, 2, 3], [0, 1, 2, 5]), (alone, [0, 3], [0, 1])):
        for name in ("start", "velocity"):
            ours, theirs = getattr(usual.trajectory, name)[:, kept], getattr(scenes.trajectory, name)[:, places]
            assert np.array_equal(ours, theirs)
        assert np.array_equal(usual.intensity[:, kept], scenes.intensity[:, places])
    fixed = draw(with_first(shape="circle"), MANY[:50])
    assert np.array_equal(fixed.trajectory.velocity, usual.trajectory.velocity)
    assert np.array_equal(fixed.present, usual.present)


def test_a_recording_is_that_of_the_config_that_says_what_was_drawn() -> None:
    written = {"circle": "circle", "square": "square", "A": {"text": "A"}}
    first = [recording.shapes[0] for recording in gerd.simulate_batch(DRAWN, range(9))]
    assert set(first) == set(written)
    for index, name in enumerate(first):
        one = gerd.simulate(DRAWN, index, **{"actors.0.repeat": 1})
        again = gerd.simulate(DRAWN, index, **{"actors.0.repeat": 1, "actors.0.shape": written[name or ""]})
        assert one.digest == again.digest
        number = int(gerd.simulate(DRAWN, index).present[:3].sum())
        assert gerd.simulate(DRAWN, index).digest == gerd.simulate(DRAWN, index, **{"actors.0.repeat": number}).digest


def absent_in(recordings: list[gerd.Recording]) -> gerd.Recording:
    return next(each for each in recordings if each.present.tolist() == [True, False, False, True])


def test_what_is_known_of_an_actor_that_is_absent() -> None:
    recording = absent_in(gerd.simulate_batch(DRAWN, range(20)))
    assert recording.actors == 4
    assert "2 of 4 actors" in repr(recording)
    assert recording.shapes[1:] == [None, None, "triangle"]
    assert recording.classes == ("circle", "square", "A", "triangle")
    assert recording.shape.tolist() == [recording.classes.index(str(recording.shapes[0])), -1, -1, 3]
    for name in ("truth", "T", "T_velocity", "T_acceleration", "positions"):
        numbers = getattr(recording, name)
        assert np.isnan(numbers[:, 1:3]).any(axis=(0, *range(2, numbers.ndim))).all(), name
        assert np.isfinite(numbers[:, [0, 3]]).all(), name
    assert np.isnan(recording.boxes()[:, 1:3]).all()
    assert recording.outlines(0)[1:3] == [[], []]
    assert not recording.masks()[:, 1:3].any()
    assert not recording.masks(edges=True)[:, 1:3].any()
    assert not recording.coverage()[:, 1:3].any()
    assert not recording.visibility()[:, 1:3].any()
    assert recording.visibility()[:, 3].all()
    assert np.isfinite(recording.flow()).all()
    recording.flow(edges=True)
    assert not set(recording.actor.tolist()) & {1, 2}
    np.testing.assert_allclose(recording.images(), recording.stages().coverage / recording.shown.full_count)


def test_pictures_exports_and_the_page_leave_an_absent_actor_out() -> None:
    recording = absent_in(gerd.simulate_batch(DRAWN, range(20)))
    index, number = recording.identity.index, int(recording.present[:3].sum())
    fewer = gerd.simulate(DRAWN, index, **{"actors.0.repeat": number})
    assert fewer.actors == 2
    drawn, alone = (next(Layout(each, 8, overlay=True).pictures([1])) for each in (recording, fewer))
    assert np.array_equal(drawn[: 12 * 8], alone[: 12 * 8])  # below are the names of the recordings
    gerd.plot.overlay(recording, 1).figure.canvas.draw()
    curves = gerd.plot.curve(recording, "x").get_lines()
    assert [line.get_label() for line in curves] == [f"actor 0: {recording.shapes[0]}", "actor 3: triangle"]
    head, step, *_ = (json.loads(line, parse_constant=pytest.fail) for line in (
        truth_lines.header(recording), *truth_lines.lines(recording)
    ))  # fmt: skip
    assert head["shapes"] == recording.shapes
    assert [entry is None for entry in step["actors"]] == [False, True, True, False]
    data = pack(recording)
    about = json.loads(data[8 : 8 + int.from_bytes(data[4:8], "little")])
    assert [each["rings"] is None for each in about["actors"]] == [False, True, True, False]


SWEPT = DRAWN.model_copy(
    update={"sweep": {"actors.1.shape": ("circle", {"text": "B"}), "actors.0.repeat": (2, {"choice": [0, 3]})}}
)


def test_a_dataset_has_the_bits_of_the_simulation_and_labels_of_classes(tmp_path: Path) -> None:
    one = Config.model_validate(DRAWN.model_dump())
    gerd.generate(one, tmp_path / "data", 12, workers=1)
    assert [fault for _, faults in verify(tmp_path / "data", regenerate=True) for fault in faults] == []
    table = Shelf("data", gerd.Recordings(tmp_path / "data")).start()["columns"]
    json.dumps(table, allow_nan=False)
    assert next(column for column in table if column["name"] == "2.x")["values"].count(None) > 0
    data = gerd.Dataset(tmp_path / "data", label=("shape", "positions", "masks"))
    assert data.classes == ("circle", "square", "A", "triangle")
    stream = gerd.Stream(one, 12, label=("shape", "positions", "masks"))
    assert stream.classes == data.classes
    frames, (shape, positions, masks) = next(iter(data.loader(12)))
    assert shape.dtype == torch.int64
    assert shape.shape == (12, 4)
    assert torch.equal(positions.isnan().all(dim=(1, 3)), shape == -1)
    assert not masks.movedim(2, 1)[shape == -1].any()
    made = stream.batch(0), stream._on_device(*stream._groups(0))
    for other, (its_shape, its_positions, its_masks) in made:
        assert torch.equal(frames, other)
        assert torch.equal(shape, its_shape)
        assert torch.equal(masks, its_masks)
        assert torch.equal(positions.nan_to_num(-7), its_positions.nan_to_num(-7))
    round_ones = data.where(lambda r: r.shapes[0] == "circle")
    assert len(round_ones) == int((shape[:, 0] == 0).sum())


def test_sweeps_over_shapes_and_numbers(tmp_path: Path) -> None:
    """Classes are those of all members, and not that of the field that is swept; members share their draws."""
    stream = gerd.Stream(SWEPT, 4, label="shape")
    assert stream.classes == ("circle", "square", "A", "B")
    circles, letters = (stream.where(lambda r, k=k: r.member == k).batch(0)[1] for k in (0, 2))
    assert circles.shape == (4, 3)
    assert torch.equal(circles[:, :2], letters[:, :2])
    assert set(circles[:, 2].tolist()) == {0}
    assert set(letters[:, 2].tolist()) == {3}
    gerd.generate(SWEPT, tmp_path / "data", 2, workers=1)
    recordings = gerd.Recordings(tmp_path / "data")
    assert [each.actors for each in recordings] == [3, 4, 3, 4] * 2
    again = gerd.simulate(SWEPT, 1, **recordings[7].identity.labels)
    assert again.digest == recordings[7].digest
    assert again.shapes == recordings[7].shapes


def test_names_do_not_show_in_digests() -> None:
    old = gerd.parse("""
sensor: {width: 40, height: 30}
actors: [{shape: {text: A}}, {shape: {svg: 'M 0 0 L 4 0 L 2 3 Z'}}, {shape: {polygon: [[0, 0], [1, 0], [0, 1]]}}]
sweep: {actors.0.shape: [circle, {text: B}], "actors.1": [{shape: {polygon: [[0, 0], [1, 0], [0, 1]]}}]}
""")
    named = gerd.parse(old.text.replace("{text: A}", "{text: A, name: first}"))
    assert named.digest == old.digest
    assert named.actors[0].shape_names == ("first",)
    assert gerd.parse(named.resolved_yaml()).actors[0].shape_names == ("first",)


WRONG = {
    "{choice: [circle, sqare]}": "actors.0.shape.choice.1: got 'sqare': did you mean square?",
    "{choice: []}": "actors.0.shape.choice: got []: allowed: 1 or more items",
    "{choice: [{choice: [circle]}]}": "actors.0.shape.choice.0",
    "{text: A, svg: 'M 0 0'}": "actors.0.shape",
    '{text: A, name: "a\\e[31m"}': "allowed: a name of printable characters",
    "circle, repeat: 1.5": "actors.0.repeat: got 1.5: allowed: a whole number",
    "circle, repeat: {uniform: [3, 1]}": "low not above high",
    "circle, repeat: {uniform: [1, 65]}": "actors.0.repeat.uniform.1: got 65",
    "circle, repeat: {normal: [3, 1]}": "allowed: a whole number from 0 to 64, {uniform: [low, high]}",
    "circle, repeat: 60}, {shape: circle, repeat: 5": "makes 65 actors; at most 64 are allowed",
    "{choice: [circle, square]}, rotation: {velocity: {boundary: 1}}": "rotation does not move the outline",
}


@pytest.mark.parametrize("written", WRONG)
def test_mistakes_are_explained(written: str) -> None:
    with pytest.raises(gerd.GerdError) as error:
        draw(gerd.parse(f"actors: [{{shape: {written}}}]"), [0])
    assert WRONG[written] in str(error.value)
