"""What a camera saw of a stimulus, whose lens, clock and noise the test draws: found, or refused with what is wrong.

The camera is `support.stand_in`: the decoded video, a lens of its own, and the pixels of eventcv or evlib.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.processes import run_here
from support.stand_in import SPREAD, THRESHOLD, CameraClock, Lens, eventcv_pixels, evlib_pixels, filmed

import gerd
from gerd.screen.clock import Edges, fit_clock
from gerd.screen.stimulus import Stimulus, plan_stimulus
from gerd.screen.view import View, fit_view
from gerd.screen.write import write_stimulus

pytest.importorskip("imageio_ffmpeg", reason="a stimulus needs imageio-ffmpeg")
pytest.importorskip("eventcv", reason="the camera is eventcv's")

SCREEN, CAMERA = (240, 180), (112, 84)
CIRCLE: dict[str, Any] = {
    "sensor": {"width": 48, "height": 36},
    "steps": 40,
    "upsampling": 16,
    "actors": [
        {
            "shape": "circle",
            "translation": {"start": [14, 12], "velocity": [0.5, 0.35], "acceleration": 0},
            "scale": {"start": 12, "acceleration": 0},
        }
    ],
}


@dataclass(frozen=True)
class Film:
    """A stimulus and what a camera had of it."""

    video: Path
    stimulus: Stimulus
    lens: Lens
    clock: CameraClock
    rows: NDArray[Any]

    @property
    def events(self) -> gerd.Events:
        return self.of(self.rows)

    def of(self, rows: NDArray[Any]) -> gerd.Events:
        return gerd.Events.from_array(rows, width=self.lens.camera[0], height=self.lens.camera[1], title="film")


def film(
    folder: Path, config: Any, seed: int, *, noise: float = 0.1, pixels: Any = eventcv_pixels, **options: Any
) -> Film:
    video = folder / "shown.mp4"
    stimulus = write_stimulus(config, video, SCREEN, 60, **options)
    chance = np.random.default_rng(seed)
    lens = Lens.drawn(chance, CAMERA, (0, 0, *SCREEN))
    clock = CameraClock(
        chance.uniform(0, 5e6), chance.uniform(-3e-4, 3e-4), stimulus.frame_us, down_us=chance.uniform(-1e4, 1e4)
    )
    rows = filmed(video, SCREEN, stimulus.gamma, lens, clock, noise=noise, pixels=pixels, seed=seed)
    return Film(video, stimulus, lens, clock, rows)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Film:
    return film(tmp_path_factory.mktemp("film"), CIRCLE, seed=11)


@pytest.fixture(scope="module")
def registered(made: Film, tmp_path_factory: pytest.TempPathFactory) -> tuple[gerd.Registration, gerd.Recordings]:
    out = tmp_path_factory.mktemp("registered") / "data"
    return gerd.register(made.events, made.stimulus, out), gerd.Recordings(out)


def view_error(made: Film, view: View) -> float:
    """How far places of the scene are from where the lens has them, rms in pixels of the camera."""
    x, y = np.meshgrid(np.linspace(0, 1, 25), np.linspace(0, 1, 25))
    share = np.column_stack([x.ravel(), y.ravel()]) * np.array(made.stimulus.size) * made.stimulus.zoom
    places = share + made.stimulus.corner
    return float(np.sqrt(((view.project(places) - made.lens.project(places)) ** 2).sum(axis=1).mean()))


def clock_error(made: Film, found: gerd.Registration) -> float:
    """How far the times of all frames are from those that they had, in frames."""
    frames = np.arange(made.stimulus.frames)
    return float(np.abs(found.clock.clock.at(frames) - made.clock.at(frames)).max() / made.stimulus.frame_us)


def refused(made: Film, rows: NDArray[Any], tmp_path: Path, stimulus: Stimulus | None = None) -> str:
    """What is said of a recording that is refused; nothing is written then."""
    with pytest.raises(gerd.GerdError) as said:
        gerd.register(made.of(rows), stimulus or made.stimulus, tmp_path / "data")
    assert list(tmp_path.iterdir()) == []
    return str(said.value)


def test_view_and_clock_are_found_among_noise(made: Film, registered: Any) -> None:
    """A tenth of all events is noise; the screen is drawn line by line."""
    found, _ = registered
    assert view_error(made, found.view.view) < 0.3
    assert clock_error(made, found) < 0.1
    assert found.view.view.k1 == pytest.approx(made.lens.k1, abs=0.01)
    assert found.clock.clock.down_us == pytest.approx(made.clock.down_us, abs=100)
    assert (found.marks > 0, found.late_marks, found.mirrored) == (True, 0, False)
    assert abs(found.turned) < 10


def test_real_events_lie_on_the_edge_that_was_shown(registered: Any) -> None:
    """A circle: its events are as far from T's centre, half way between two steps, as its radius."""
    _, data = registered
    recording = data[0]
    assert np.array_equal(recording.truth, gerd.simulate(CIRCLE, timing="exact").truth)
    edge = ~recording.background
    step, y, x, p = recording.coordinates[edge].T
    centre = (recording.positions[step, 0] + recording.positions[step - 1, 0]) / 2
    away = np.column_stack([x, y]) + 0.5 - centre
    distance = np.hypot(*away.T) - 6
    assert len(distance) > 2000
    # A logarithm makes most of the first light that a pixel gets, and a bright shape larger by a part of a pixel.
    assert -0.1 < np.median(distance) < 0.5
    along, near = away @ np.array([0.5, 0.35]) / np.hypot(0.5, 0.35), np.abs(distance) < 1
    assert near.mean() > 0.7
    ahead = along > 0
    assert (ahead == p.astype(bool))[near].mean() > 0.85  # ON in front of a bright circle, OFF behind it
    front, back = (np.median(distance[near & (sign * along > 4)]) for sign in (1, -1))
    assert abs(front - back) < 0.15  # half a step of time would be 0.6 pixels


def test_noise_is_known_from_the_truth(made: Film, registered: Any) -> None:
    """Away from the edges all events are background: as many as the camera's noise has in that time and area."""
    found, data = registered
    recording = data[0]
    span = made.clock.frame_us * (1 + made.clock.drift) * (recording.steps - 1)
    total = made.clock.frame_us * (1 + made.clock.drift) * (made.stimulus.frames + 30)
    pixels = int((found.pixels >= 0).sum())
    noise = len(made.rows) * 0.1 * span / total * pixels / (CAMERA[0] * CAMERA[1])
    assert 0.75 * noise < recording.background.sum() < noise + 4 * np.sqrt(noise)  # some of it lies near edges


def test_the_dataset_says_that_it_was_recorded(
    made: Film, registered: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, data = registered
    assert data.recorded
    assert data[0].config.timing == "exact"
    assert [faults for _, faults in gerd.verify(data.path, regenerate=True) if faults] == []
    copy = tmp_path / "copy"
    shutil.copytree(data.path, copy)
    assert run_here("verify", str(copy), "--regenerate") == 0
    said = capfd.readouterr().out
    assert "their events were recorded and not simulated, and only their ground truth was made again" in said
    assert run_here("info", str(copy)) == 0
    assert "recorded    by a camera, not simulated" in capfd.readouterr().out
    for count in (1, 2):
        with pytest.raises(gerd.StorageError, match="its events were recorded by a camera"):
            gerd.generate(made.stimulus.family, copy, count)
    (copy / "registration.json").write_text("{}")
    (fault,) = (fault for _, faults in gerd.verify(copy) for fault in faults)
    assert "registration.json: the file differs from the sha256 in the manifest" in str(fault)
    frames, _ = gerd.Dataset(data.path, "frames", "T", steps=8)[0]
    assert frames.shape == (8, 2, 36, 48)


def test_the_same_again_changes_nothing_and_another_is_refused(made: Film, registered: Any, tmp_path: Path) -> None:
    _, data = registered
    before = {path.name: path.read_bytes() for path in Path(data.path).iterdir()}
    gerd.register(made.events, made.stimulus, data.path)
    assert {path.name: path.read_bytes() for path in Path(data.path).iterdir()} == before
    with pytest.raises(gerd.StorageError, match="holds a different dataset"):
        gerd.register(made.of(made.rows[5:]), made.stimulus, data.path)
    (tmp_path / "mine.txt").write_text("else")
    with pytest.raises(gerd.StorageError, match="holds files that are not a GERD dataset"):
        gerd.register(made.events, made.stimulus, tmp_path)


def test_what_is_stopped_is_finished_by_the_same_call(made: Film, registered: Any, tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    _, data = registered
    out = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        gerd.register(made.events, made.stimulus, out, progress=stop)
    assert not gerd.Recordings(out).manifest.complete
    gerd.register(made.events, made.stimulus, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in Path(data.path).iterdir()
    }


def turned(rows: NDArray[Any], quarter: int, mirrored: bool) -> tuple[NDArray[Any], tuple[int, int]]:
    """The events of a camera that is turned by quarters to the left, so that its picture is to the right; a mirror."""
    width, height = CAMERA
    result = rows.copy()
    for _ in range(quarter):
        result["x"], result["y"] = height - 1 - result["y"], result["x"].copy()
        width, height = height, width
    if mirrored:
        result["x"] = width - 1 - result["x"]
    return result, (width, height)


@pytest.mark.parametrize(("quarter", "mirrored"), [(1, False), (2, False), (0, True), (3, True)])
def test_a_turned_or_mirrored_view_is_noticed(
    made: Film, registered: Any, quarter: int, mirrored: bool, tmp_path: Path
) -> None:
    rows, (width, height) = turned(made.rows, quarter, mirrored)
    events = gerd.Events.from_array(rows, width=width, height=height, title="turned")
    found = gerd.register(events, made.stimulus, tmp_path / "data")
    usual, data = registered
    assert found.mirrored == mirrored
    expected = usual.turned + 90 * quarter if not mirrored else -(usual.turned + 90 * quarter)
    assert abs((found.turned - expected + 180) % 360 - 180) < 1
    said = str(found)
    assert ("in a mirror" in said) == mirrored
    assert ("upside down" in said) == (quarter == 2)
    assert ("on its side" in said) == (quarter % 2 == 1)
    upright, ours = data[0], gerd.Recordings(tmp_path / "data")[0]
    same = np.intersect1d(upright.keys // upright.codec.ticks, ours.keys // ours.codec.ticks)
    assert len(same) > 0.5 * len(upright)  # the scene is the right way up; single pixels may be those beside


def test_with_a_third_of_the_screen_hidden_it_still_works(made: Film, tmp_path: Path) -> None:
    seen = made.rows[made.rows["x"] > 0.37 * CAMERA[0]]
    found = gerd.register(made.of(seen), made.stimulus, tmp_path / "data")
    assert sum(map(len, found.dots)) < 0.8 * 2 * len(made.stimulus.dots)
    assert view_error(made, found.view.view) < 0.3
    assert clock_error(made, found) < 0.1


def test_with_nearly_all_of_it_hidden_it_is_refused(made: Film, tmp_path: Path) -> None:
    seen = made.rows[(made.rows["x"] > 0.7 * CAMERA[0]) & (made.rows["y"] > 0.6 * CAMERA[1])]
    said = refused(made, seen, tmp_path)
    assert "allowed: " in said


def test_a_video_of_something_else_is_refused(made: Film, tmp_path: Path) -> None:
    other = plan_stimulus({**CIRCLE, "seed": 1}, SCREEN, 60)
    said = refused(made, made.rows, tmp_path, other)
    assert "film: the flashes of this stimulus are not found: those before the scenes agree to 0" in said
    slower = plan_stimulus(CIRCLE, SCREEN, 50)
    assert "the flashes of this stimulus are not found" in refused(made, made.rows, tmp_path, slower)
    middle = (made.stimulus.scenes[0].hold + made.stimulus.scenes[0].stop) / 2
    part = made.rows[made.rows["t"] < made.clock.at(middle)]
    assert "is a part of it missing?" in refused(made, part, tmp_path)
    scene = gerd.simulate(CIRCLE, steps=3000, step_us=5000, timing="exact").events
    assert "the flashes of this stimulus are not found" in refused(made, scene, tmp_path)
    assert "the flashes of this stimulus are not found" in refused(made, made.rows[:1], tmp_path)


def test_a_camera_that_was_moved_is_refused(made: Film, tmp_path: Path) -> None:
    rows = made.rows.copy()
    late = rows["t"] > made.clock.at(made.stimulus.scenes[0].first)
    rows["x"][late] = np.minimum(rows["x"][late] + 2, CAMERA[0] - 1)
    said = refused(made, rows, tmp_path)
    assert "film: between the dots before and after, camera or screen moved by 2" in said


def test_dropped_frames_are_refused(made: Film, tmp_path: Path) -> None:
    """The player falls behind by two frames in the middle of the scene, and catches up at its end."""
    shown = made.stimulus.scenes[0]
    rows = made.rows.copy()
    begin, end = made.clock.at(shown.first + 5), made.clock.at(shown.stop + 10)
    behind = (rows["t"] > begin) & (rows["t"] < end)
    rows["t"][behind] += round(2 * made.stimulus.frame_us)
    said = refused(made, rows[np.argsort(rows["t"], kind="stable")], tmp_path)
    assert "marks that were not seen within half a frame, so that frames were dropped: " in said


def test_the_command(made: Film, registered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    _, data = registered
    monkeypatch.chdir(tmp_path)
    shutil.copy(made.video.with_suffix(".json"), "shown.json")
    gerd.write_events("film.raw", made.events, format="evt3")
    assert run_here("register", "film.raw", "shown.json", "data") == 0
    said = capfd.readouterr().out
    assert "wrote data and data.png: 1 real recording with exact ground truth" in said
    assert Path("data.png").read_bytes().startswith(b"\x89PNG")
    about = json.loads(Path("data/registration.json").read_bytes())
    assert about["recording"]["name"] == "film.raw"
    assert gerd.Recordings("data")[0].digest == data[0].digest
    wrong = {
        ("shown.json", "shown.json", "new"): "shown.json: allowed: a file of events",
        ("film.raw", "nowhere.json", "new"): "nowhere.json: there is no such file",
        ("film.raw", "data/registration.json", "new"): "is no file that gerd stimulus has written",
        ("film.raw", "shown.json", "new", "--picture", "a.gif"): "a.gif: allowed: a name that ends in .png, .svg, .pdf",
        ("film.raw", "shown.json", "new", "--read", "step_us=5"): "step_us: goes with pictures and windows",
    }
    for words, message in wrong.items():
        assert run_here("register", *words) == 1
        assert message in capfd.readouterr().err
        assert not Path("new").exists()


def test_a_view_is_known_as_well_as_it_says() -> None:
    """Dots that are seen with a known scatter: the errors of many views, by what each says of its own, are 1 in rms."""
    chance = np.random.default_rng(5)
    x, y = np.meshgrid(np.linspace(20, 220, 7), np.linspace(20, 160, 6))
    places = np.column_stack([x.ravel(), y.ravel()])
    scaled = []
    for _ in range(40):
        lens = Lens.drawn(chance, CAMERA, (0, 0, *SCREEN))
        fit = fit_view(SCREEN, CAMERA, places, lens.project(places) + chance.normal(0, 0.1, places.shape))
        assert fit is not None
        assert fit.kept.sum() > 38
        off = np.sqrt(((fit.view.project(places) - lens.project(places)) ** 2).sum(axis=1).mean())
        scaled.append(off / fit.uncertainty(places))
        seen = fit.view.project(places)
        assert np.abs(fit.view.unproject(seen) - places).max() < 1e-6
    # 40 mean squares of 9 numbers each: chi-squared of 360, by 360, within 5 of its deviations
    assert np.mean(np.square(scaled)) == pytest.approx(1, abs=5 * np.sqrt(2 / 360) + 0.05)


def test_dots_that_are_wrong_are_left_out() -> None:
    chance = np.random.default_rng(6)
    x, y = np.meshgrid(np.linspace(20, 220, 7), np.linspace(20, 160, 6))
    places = np.column_stack([x.ravel(), y.ravel()])
    lens = Lens.drawn(chance, CAMERA, (0, 0, *SCREEN))
    seen = lens.project(places) + chance.normal(0, 0.05, places.shape)
    wrong = chance.choice(len(places), 8, replace=False)
    seen[wrong] += chance.uniform(3, 30, (8, 2))
    fit = fit_view(SCREEN, CAMERA, places, seen)
    assert fit is not None
    assert set(np.flatnonzero(~fit.kept)) == set(wrong)
    assert fit_view(SCREEN, CAMERA, places, chance.uniform(0, 80, places.shape)) is None
    assert fit_view(SCREEN, CAMERA, places[:5], seen[:5]) is None


def test_a_clock_is_known_as_well_as_it_says() -> None:
    chance = np.random.default_rng(7)
    stimulus = plan_stimulus(CIRCLE, SCREEN, 60)
    scaled = []
    for _ in range(60):
        frame = chance.uniform(0, stimulus.frames, 80)
        place, ends = chance.uniform(0, 1, (80, 2)), chance.integers(0, 2, 80).astype(float)
        seen = 2e6 + 16_670 * frame + 5000 * (place[:, 1] - 0.5) + 700 * (ends - 0.5) + chance.normal(0, 50, 80)
        seen[:3] += 9000
        fit = fit_clock(Edges(frame, place, ends, seen))
        assert not fit.kept[:3].any()
        assert fit.clock.lag_us == pytest.approx(700, abs=80)
        ends_of_all = np.array([0, stimulus.frames])
        off = np.abs(fit.clock.at(ends_of_all) - 2e6 - 16_670 * ends_of_all)
        scaled.append(off / fit.uncertainty_us(stimulus))
    assert 0.6 < np.mean(np.square(scaled)) < 1.4


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_thresholds_of_another_programs_pixels_are_given_back(noise: float, tmp_path: Path) -> None:
    """Through video, screen, lens and registration. The levels are those at which v2e's pixels are logarithmic.

    The spread comes out too large: pixels without noise of their own, which have all seen the same flashes, do not hold
    anything between their thresholds with the same probability.
    """
    shapes = [
        {**CIRCLE["actors"][0], "translation": {"acceleration": 0, "velocity": [1.0, 0.8]}},
        {"shape": "square", "intensity": 0.6, "translation": {"velocity": [-0.8, 0.7]}, "scale": {"start": 11}},
    ]
    shown = {**CIRCLE, "steps": 150, "actors": shapes}
    made = film(tmp_path, shown, 1, noise=noise, count=12, levels=(128, 230))
    gerd.register(made.events, made.stimulus, tmp_path / "data")
    found = gerd.fit(tmp_path / "data")
    assert found.response == pytest.approx(1 / ((230 / 128) ** 2.2 - 1))
    assert found.thresholds is not None
    assert found.thresholds.on.value == pytest.approx(THRESHOLD, rel=0.05)
    assert found.thresholds.off.value == pytest.approx(THRESHOLD, rel=0.05)
    assert 0.8 * SPREAD < found.thresholds.spread.value < 2.5 * SPREAD
    assert "# readout: latency is a part of the clock's offset" in found.yaml


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_over_a_minute(seed: int, tmp_path: Path) -> None:
    made = film(tmp_path, {**CIRCLE, "steps": 3600}, seed)
    found = gerd.register(made.events, made.stimulus, tmp_path / "data")
    assert view_error(made, found.view.view) < 0.3
    assert clock_error(made, found) < 0.1
    assert found.late_marks == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_many_lenses_and_clocks(seed: int, tmp_path: Path) -> None:
    """With evlib's pixels, too, which are ESIM's."""
    if seed % 2:
        pytest.importorskip("cv2", reason="evlib's simulation needs it")
    made = film(tmp_path, CIRCLE, seed, pixels=evlib_pixels if seed % 2 else eventcv_pixels)
    found = gerd.register(made.events, made.stimulus, tmp_path / "data")
    assert view_error(made, found.view.view) < 0.3
    assert clock_error(made, found) < 0.1
