"""The video of `gerd stimulus`, decoded by ffmpeg: what is on the screen when, against closed forms."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.processes import run_here

import gerd
from gerd.screen.stimulus import FLASHES, Stimulus, parse_rate, plan_stimulus, read_stimulus
from gerd.screen.write import sidecar, write_stimulus

ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="a stimulus needs imageio-ffmpeg")

SCREEN = (200, 122)
START, VELOCITY, SIZE = (14.3, 9.6), (0.85, 0.4), 8.0
CIRCLE: dict[str, Any] = {
    "sensor": {"width": 48, "height": 32},
    "steps": 20,
    "upsampling": 16,
    "actors": [
        {
            "shape": "circle",
            "translation": {"start": START, "velocity": VELOCITY, "acceleration": 0},
            "scale": {"start": SIZE, "acceleration": 0},
        }
    ],
}

Pictures = NDArray[np.uint8]


def decoded(video: Path, size: tuple[int, int]) -> Pictures:
    """(frames, height, width), as a player has them."""
    command = [ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(video), "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, *size[::-1])


def light(stimulus: Stimulus, pictures: Pictures) -> NDArray[np.float64]:
    """Brightness: the light of the screen, 0 at the dark level and 1 at the bright one."""
    dark, bright = ((level / 255) ** stimulus.gamma for level in stimulus.levels)
    return ((pictures / 255) ** stimulus.gamma - dark) / (bright - dark)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Stimulus, Pictures]:
    path = tmp_path_factory.mktemp("video") / "out.mp4"
    stimulus = write_stimulus(CIRCLE, path, SCREEN, "60000/1001", 2)
    return path, stimulus, decoded(path, SCREEN)


def test_a_circle_is_where_T_says_at_the_resolution_of_the_screen(video: tuple[Path, Stimulus, Pictures]) -> None:
    _, stimulus, pictures = video
    assert stimulus.zoom == 3
    y, x = np.mgrid[: SCREEN[1], : SCREEN[0]] + 0.5
    for shown in stimulus.scenes:
        for step in range(shown.steps):
            left, top = stimulus.corner
            scene = np.s_[top : top + 96, left : left + 144]
            seen = light(stimulus, pictures[shown.first + step])[scene]
            centre = [(seen * axis[scene]).sum() / seen.sum() for axis in (x, y)]
            truth = np.array(stimulus.corner) + 3 * (np.array(START) + step * np.array(VELOCITY))
            assert np.abs(centre - truth).max() < 0.03  # screen pixels; levels are rounded to 1/255
            assert seen.sum() == pytest.approx(np.pi * (3 * SIZE / 2) ** 2, rel=0.005)
        held = pictures[shown.hold : shown.first + 1, top : top + 96, left : left + 144]
        assert shown.first - shown.hold >= 0.25 * 59.94 - 1
        assert (held == held[0]).all()


def test_frames_have_exact_times(video: tuple[Path, Stimulus, Pictures]) -> None:
    path, stimulus, pictures = video
    command = [ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path), "-c", "copy", "-f", "framecrc", "-"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    (base,) = (line.split()[-1] for line in said if line.startswith("#tb"))
    numerator, denominator = map(int, base.split("/"))
    times = [int(line.split(",")[2]) * numerator * 60000 for line in said if not line.startswith("#")]
    assert times == [i * 1001 * denominator for i in range(stimulus.frames)]
    assert len(pictures) == stimulus.frames


def test_the_screen_flashes_and_its_dots_are_lit_as_it_is_said(video: tuple[Path, Stimulus, Pictures]) -> None:
    _, stimulus, pictures = video
    before, after = ({frame for start, stop in flashes for frame in range(start, stop)} for flashes in stimulus.flashes)
    hold, stop = stimulus.scenes[0].hold, stimulus.scenes[-1].stop
    for frame, picture in enumerate(pictures):
        spots = stimulus.dots if not hold <= frame < stop else stimulus.marks
        if frame in before | after:
            assert (picture == 192).all()
            continue
        lit = [spot for spot in spots if any(a <= frame < b for a, b in spot.lit)]
        for spot in spots:
            expected = 192 if spot in lit else 64
            assert picture[int(spot.y), int(spot.x)] == expected
        if not hold <= frame < stop:
            seen = light(stimulus, picture).sum()
            assert seen == pytest.approx(sum(np.pi * spot.radius**2 for spot in lit), rel=0.02, abs=1e-9)
    assert len(before) > FLASHES < len(after)
    assert max(before) < hold < stop < min(after)


def test_dots_are_told_apart_by_when_they_are_lit(video: tuple[Path, Stimulus, Pictures]) -> None:
    _, stimulus, _ = video
    slots = sorted({part for dot in stimulus.dots for part in dot.lit})
    codes = np.array([[part in dot.lit for part in slots] for dot in stimulus.dots])
    assert (codes.sum(axis=1) == 16).all()  # in both grids together
    for block in np.split(codes, 2, axis=1):
        differ = (block[:, None] != block[None]).sum(axis=2) + 99 * np.eye(len(block))
        assert differ.min() >= 4
    assert all(b <= c for (_, b), (c, _) in pairwise(slots))


def test_nothing_but_marks_changes_beside_the_scene(video: tuple[Path, Stimulus, Pictures]) -> None:
    _, stimulus, pictures = video
    left, top = stimulus.corner
    y, x = np.mgrid[: SCREEN[1], : SCREEN[0]] + 0.5
    outside = np.ones(SCREEN[::-1], bool)
    outside[top : top + 96, left : left + 144] = False
    for spot in stimulus.marks:
        disc = np.hypot(x - spot.x, y - spot.y) < spot.radius + 1
        assert not (disc & ~outside).any()
        outside &= ~disc
    assert len(stimulus.marks) >= 2
    for shown in stimulus.scenes:
        assert (pictures[shown.hold : shown.stop][:, outside] == 64).all()


def test_another_stimulus_flashes_otherwise() -> None:
    one, *others = (
        plan_stimulus({**CIRCLE, **change}, SCREEN, 60, count)
        for change, count in (({}, 1), ({"seed": 1}, 1), ({}, 2), ({"steps": 21}, 1))
    )
    lengths = [stop - start for start, stop in one.flashes[0]]
    assert [stop - start for start, stop in one.flashes[1]] == [3 * min(lengths) - length for length in lengths]
    assert all(other.flashes[0] != one.flashes[0] for other in others)
    assert plan_stimulus(CIRCLE, SCREEN, 60).flashes == one.flashes


def test_members_are_shown_one_after_the_other_with_the_truth_of_the_config() -> None:
    """T(t) is that of the config as it was written; what has to be different for a screen changes nothing of it."""
    from gerd.screen.paint import drawn

    family = {
        **CIRCLE,
        "noise": {"background": 0.01, "hot": {"share": 0.1, "rate_hz": 300}},
        "actors": [{"shape": "triangle", "scale": {"start": 9}, "rotation": {"velocity": 3}}],
        "sweep": {"time_scale": [{"factor": 0.5, "keep": "path"}, {"factor": 2, "keep": "path"}]},
    }
    stimulus = plan_stimulus(family, SCREEN, 50, 2)
    assert [(each.row, each.index, each.member) for each in stimulus.scenes] == [
        *((0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1))
    ]
    for each in stimulus.scenes:
        wanted = gerd.simulate(family, each.index, each.member)
        assert each.steps == wanted.steps
        assert np.array_equal(drawn(stimulus, each)[1], wanted.truth)
    assert stimulus.family.step_us == 20_000


def test_brightness_becomes_light() -> None:
    from gerd.screen.paint import pictures

    half = {**CIRCLE, "steps": 1, "actors": [{**CIRCLE["actors"][0], "intensity": 0.5}]}
    for gamma in (1.0, 2.2):
        stimulus = plan_stimulus(half, SCREEN, 60, gamma=gamma, levels=(200, 20))  # a dark shape on a bright screen
        shown = stimulus.scenes[0]
        picture = list(pictures(stimulus))[shown.first]
        x, y = (int(c + 3 * s) for c, s in zip(stimulus.corner, START, strict=True))
        assert light(stimulus, picture)[y, x] == pytest.approx(0.5, abs=0.01)
    with pytest.raises(gerd.GerdError, match="brightness from -3 to 1 does not fit"):
        list(pictures(plan_stimulus({**CIRCLE, "actors": [{**CIRCLE["actors"][0], "intensity": -3}]}, SCREEN, 60)))


@pytest.mark.parametrize("border", ["wrap", "free"])
def test_a_scene_ends_at_its_frame(border: str) -> None:
    """And on a torus, what leaves on one side enters on the other."""
    from gerd.screen.paint import pictures

    move = {"start": [47, 15], "velocity": 0, "acceleration": 0, "border": border}
    shown = {**CIRCLE, "steps": 1, "actors": [{**CIRCLE["actors"][0], "translation": move}]}
    stimulus = plan_stimulus(shown, SCREEN, 60)
    seen = light(stimulus, list(pictures(stimulus))[stimulus.scenes[0].first])
    left, top = stimulus.corner
    inside = seen[top : top + 96, left : left + 144]
    at_left, at_right = inside[:, :72].sum(), inside[:, 72:].sum()
    whole = np.pi * (3 * SIZE / 2) ** 2
    assert at_right < whole
    assert at_left == pytest.approx(whole - at_right if border == "wrap" else 0, abs=0.005 * whole)


def test_a_screen_of_odd_size_is_exact_too(tmp_path: Path) -> None:
    from gerd.screen.paint import pictures

    size = (151, 101)
    stimulus = write_stimulus({**CIRCLE, "steps": 3}, tmp_path / "odd.mp4", size, 25)
    assert (decoded(tmp_path / "odd.mp4", size) == np.stack(list(pictures(stimulus)))).all()


def test_what_is_read_is_what_was_written(video: tuple[Path, Stimulus, Pictures]) -> None:
    path, stimulus, _ = video
    data = sidecar(path).read_bytes()
    assert read_stimulus(data, "out.json") == stimulus
    fields = json.loads(data)
    fewer = {name: value for name, value in fields["config"].items() if name != "integrator"}  # all at its defaults
    assert read_stimulus(json.dumps({**fields, "config": fewer}).encode(), "out.json").flashes == stimulus.flashes
    wrong = {
        "is no file that gerd stimulus has written": [[], {"format": "else"}, {**fields, "format": "gerd"}],
        "is damaged: ": [
            {name: value for name, value in fields.items() if name != "dots"},
            {**fields, "frames": "many"},
            {**fields, "config": {**fields["config"], "seed": 8}},
            {**fields, "config": {}},
            {**fields, "flashes": [[], []]},
            {**fields, "scenes": []},
            {**fields, "dots": fields["dots"][1:]},
            {**fields, "frames_per_second": [60, 0]},
            {**fields, "zoom": 10**9},
            {**fields, "screen": [-1, 5]},
            {**fields, "gamma": 1e99},
            {**fields, "count": 10**12},
        ],
    }
    for message, contents in wrong.items():
        for content in contents:
            with pytest.raises(gerd.StorageError, match=f"out.json: {message}"):
                read_stimulus(json.dumps(content).encode(), "out.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frames_per_second": "fast"}, "frames per second 'fast': allowed: a number from 5 to 2000"),
        ({"frames_per_second": 0}, "frames per second 0: allowed"),
        ({"screen": (40, 30)}, "the screen has 40×30 pixels and the scene 48×32; allowed: a screen"),
        ({"levels": (9, 9)}, "levels 9 and 9: allowed: two that differ"),
        ({"levels": (0, 256)}, "levels: bright 256: allowed: a whole number from 0 to 255"),
        ({"gamma": 0}, "gamma 0: allowed: 0.2 to 5"),
        ({"zoom": 4}, "zoom 4: allowed: a whole number from 1 to 3"),
        ({"count": 0}, "count 0: allowed: a whole number, 1 or more"),
        ({"count": 10**9}, "frames; allowed: up to"),
        ({"path": "video.avi"}, "video.avi: allowed: a name that ends with .mp4"),
        ({"path": "nowhere/video.mp4"}, "cannot be written: there is no folder nowhere"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gerd.GerdError, match=message):
        write_stimulus(CIRCLE, **{"path": "out.mp4", "screen": SCREEN, **options})
    assert list(tmp_path.iterdir()) == []


def test_what_is_stopped_half_way_leaves_nothing(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_stimulus(CIRCLE, tmp_path / "out.mp4", SCREEN, 60, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_rates_are_fractions() -> None:
    assert [str(parse_rate(wish)) for wish in (60, "59.94", "60000/1001", 143.9)] == [
        *("60", "2997/50", "60000/1001", "1439/10")
    ]


def test_the_command_says_what_it_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle.yaml").write_text(json.dumps(CIRCLE))
    asked = ["stimulus", "circle.yaml", "out.mp4", "--screen", "150x100", "--fps", "25", "--set", "steps=4"]
    assert run_here(*asked) == 0
    said = capfd.readouterr().out
    stimulus = read_stimulus((tmp_path / "out.json").read_bytes(), "out.json")
    assert f"wrote out.mp4 and out.json: {stimulus.frames} frames, " in said
    assert "1 recording, 2 screen pixels to a pixel of the scene\n" in said
    assert stimulus.scenes[0].steps == 4
    assert run_here(*asked[:3], "--screen", "wide") == 1
    assert "error: --screen wide: allowed: WIDTHxHEIGHT in pixels" in capfd.readouterr().err
