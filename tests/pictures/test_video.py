"""Files that `gerd render` writes, read back by other programs: Pillow, ffmpeg, an XML parser."""

from __future__ import annotations

import base64
import io
import re
import sys
import weakref
import xml.etree.ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image
from support.scenes import actor, simulated

import gerd
from gerd.page.render import KINDS, STILLS, VIDEOS, render
from gerd.pictures import figure, plot, video
from gerd.pictures.colours import BACKDROP, BOX, EVENTS, OFF, ON, OUTLINE, PATH
from gerd.recording.recording import Recording

matplotlib.use("Agg")
from matplotlib import pyplot

ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="MP4 files need imageio-ffmpeg")

MOVING: dict[str, Any] = {"width": 20, "height": 12, "steps": 6, "upsampling": 4}


@pytest.fixture(scope="module")
def square() -> Recording:
    """A square of 4 px whose centre is at (5 + t, 6)."""
    return simulated(actor(at=[5, 6], velocity=[1.0, 0.0], size=4.0), **MOVING)


@pytest.fixture(scope="module")
def noisy() -> Recording:
    """Something in every frame, both polarities in some pixels."""
    return simulated(actor(velocity=[1.0, 0.3]), noise={"background": 0.3}, **MOVING)


def pictures_of(path: Path) -> list[np.ndarray]:
    """The pictures of a GIF as Pillow reads them, (height, width, 3)."""
    with Image.open(path) as opened:
        return [np.asarray(opened.convert("RGB")) for i in range(opened.n_frames) if not opened.seek(i)]


def wanted_colours(recording: Recording, step: int) -> np.ndarray:
    off, on = recording.frames(step, step + 1)[0].numpy()
    return np.array(EVENTS)[off + 2 * on]


# Videos


def test_a_gif_is_the_events_step_by_step(noisy: Recording, tmp_path: Path) -> None:
    path = tmp_path / "out.gif"
    render(noisy, path, zoom=10, fps=10)
    pictures = pictures_of(path)
    assert len(pictures) == 6
    for step, picture in enumerate(pictures):
        for corner in (0, 4, 9):  # of the 10×10 screen pixels of each pixel
            np.testing.assert_array_equal(picture[corner:120:10, corner::10], wanted_colours(noisy, step))
        on, off = (np.nonzero((picture[120:] == colour).all(-1))[1] for colour in (ON, OFF))
        assert 0 < on.max() < off.min()  # the legend: ON, then OFF
        assert step == 0 or (picture[120:] != pictures[step - 1][120:]).any()  # the counter
    with Image.open(path) as opened:
        assert (opened.info["duration"], opened.info["loop"]) == (100, 0)


def test_a_square_moving_right_is_blue_at_its_right_edge(square: Recording, tmp_path: Path) -> None:
    render(square, tmp_path / "out.gif", zoom=4)
    picture = pictures_of(tmp_path / "out.gif")[2]
    assert (picture[16:32, 32:36] == ON).all()  # x from 8 to 9, y from 4 to 8
    assert (picture[16:32, 16:20] == OFF).all()  # x from 4 to 5


def test_a_gif_of_a_part(square: Recording, tmp_path: Path) -> None:
    render(square, tmp_path / "all.gif")
    render(square, tmp_path / "part.gif", start=-4, stop=5)
    every, part = pictures_of(tmp_path / "all.gif"), pictures_of(tmp_path / "part.gif")
    assert len(part) == 3
    for one, other in zip(part, every[2:5], strict=True):
        np.testing.assert_array_equal(one, other)  # the counter, too


def test_pictures_that_do_not_differ_are_kept(tmp_path: Path) -> None:
    pictures = [np.zeros((4, 6), np.uint8)] * 3
    (tmp_path / "out.gif").write_bytes(b"".join(video.gif((6, 4), pictures, 20.0)))
    assert len(pictures_of(tmp_path / "out.gif")) == 3


def test_a_long_video_needs_no_more_memory_than_a_short_one() -> None:
    """A picture can be forgotten as soon as the next one has been written."""
    made: list[weakref.ref[np.ndarray]] = []

    def pictures() -> Iterator[np.ndarray]:
        for i in range(50):
            picture = np.full((4, 6), i, np.uint8)
            made.append(weakref.ref(picture))
            yield picture

    alive = [sum(picture() is not None for picture in made) for _ in video.gif((6, 4), pictures(), 20.0)]
    assert len(made) == 50
    assert max(alive) <= 3


@pytest.mark.parametrize("fps", [5.0, 24.0])
def test_an_mp4_is_read_back_by_ffmpeg(fps: float, square: Recording, tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    render(square, path, zoom=8, fps=fps)
    reader = ffmpeg.read_frames(str(path))
    about = next(reader)
    assert about["fps"] == fps
    wide, high = about["size"]
    pictures = [np.frombuffer(picture, np.uint8).reshape(high, wide, 3).astype(int) for picture in reader]
    assert (len(pictures), wide) == (6, 160)
    for step, picture in enumerate(pictures):
        middles = picture[4:96:8, 4::8]
        assert np.abs(middles - wanted_colours(square, step)).max() < 30  # H.264 is not exact


def test_the_overlay_lies_where_the_closed_form_says(square: Recording, tmp_path: Path) -> None:
    """At step 3 the square reaches from (6, 4) to (10, 8), and its centre has come from (5, 6) to (8, 6)."""
    zoom = 16
    render(square, tmp_path / "out.gif", zoom=zoom, overlay=True)
    picture = pictures_of(tmp_path / "out.gif")[3][: 12 * zoom]
    y, x = np.nonzero((picture == OUTLINE).all(-1))
    assert (x.min(), x.max(), y.min(), y.max()) == (6 * zoom, 10 * zoom, 4 * zoom, 8 * zoom)
    assert set(zip(x, y, strict=True)) <= {
        (u, v)
        for u in range(6 * zoom, 10 * zoom + 1)
        for v in range(4 * zoom, 8 * zoom + 1)
        if u in (6 * zoom, 10 * zoom) or v in (4 * zoom, 8 * zoom)
    }
    y, x = np.nonzero((picture == PATH).all(-1))
    assert (x.min(), x.max()) == (5 * zoom, 8 * zoom + 2)
    assert {6 * zoom - 2, 6 * zoom + 2} <= set(y) <= set(range(6 * zoom - 2, 6 * zoom + 3))
    assert not (picture == BOX).all(-1).any()  # the outline of this square is its box, and is drawn last
    turned = simulated(actor(at=[8, 6], size=4.0, turn=45.0), **MOVING)
    render(turned, tmp_path / "box.gif", zoom=zoom, overlay=True)
    y, x = np.nonzero((pictures_of(tmp_path / "box.gif")[3][: 12 * zoom] == BOX).all(-1))
    reach = 2 * np.sqrt(2)
    assert (x.min(), x.max(), y.min(), y.max()) == tuple(
        int((middle + side * reach) * zoom) for middle in (8, 6) for side in (-1, 1)
    )


def test_side_by_side_is_what_the_sensor_sees(tmp_path: Path) -> None:
    recording = simulated(actor(at=[5.5, 6], velocity=[1.0, 0.0], size=4.0, intensity=0.5), **MOVING)
    render(recording, tmp_path / "out.gif", zoom=4, side_by_side=True)
    for step, picture in enumerate(pictures_of(tmp_path / "out.gif")):
        grey = picture[2:48:4, 2:80:4]
        np.testing.assert_allclose(grey, 255 * recording.images()[step][..., None] * np.ones(3), atol=0.51 * 255 / 247)
        events = picture[2:48:4, -78::4]
        np.testing.assert_array_equal(events, wanted_colours(recording, step))


# Families

FAMILY = """
sensor: {width: 20, height: 12}
steps: 6
upsampling: 4
actors: [{shape: square, translation: {start: [6, 6], velocity: [0.5, 0]}, scale: {start: 4}}]
sweep: {time_scale: [0.5, 2], steps: [6, 4, 3]}
"""


@pytest.fixture(scope="module")
def members() -> list[Recording]:
    return gerd.simulate_family(FAMILY)


def test_a_family_lies_side_by_side_step_by_step(members: list[Recording], tmp_path: Path) -> None:
    """The last swept path along the rows; a member that has ended is gone."""
    render(members, tmp_path / "out.gif", zoom=10)
    pictures = pictures_of(tmp_path / "out.gif")
    assert len(pictures) == 6
    down, across = 120 + video.LINE, 200 + video.GAP
    for step, picture in enumerate(pictures):
        for k, member in enumerate(members):
            top, left = k // 3 * down, k % 3 * across
            shown = picture[top + 5 : top + 120 : 10, left + 5 : left + 200 : 10]
            if step < member.steps:
                np.testing.assert_array_equal(shown, wanted_colours(member, step))
            else:
                assert len(np.unique(shown)) == 1
                assert (shown != BACKDROP).all()
            words = picture[top + 120 : top + down, left : left + 200]
            assert words.min() < 100  # there is ink
    assert (pictures[0][120:140, :200] != pictures[0][120:140, 208:408]).any()  # and each says something else


def words_of(axes: Any) -> list[str]:
    """The heads at some Axes."""
    return [text.get_text() for ax in axes for text in ax.texts]


def test_a_family_in_one_figure(members: list[Recording]) -> None:
    drawn = figure.family(members, count=3)
    assert drawn.get_suptitle() == "index 0, 6 members"
    rows = np.array([ax for ax in drawn.axes if ax.images]).reshape(6, 3)
    columns = words_of(rows[0])[1:]
    assert columns == ["0 % of the way", "50 % of the way", "100 % of the way"]
    for row, member in zip(rows, members, strict=True):
        time_scale, steps = member.identity.labels.values()
        assert words_of(row[:1])[0] == f"time_scale={time_scale}\nsteps={steps}"
        assert row[0].get_title() == "step 0"
        assert row[-1].get_title() == f"step {steps - 1}"
        shown = np.asarray(row[-1].images[0].get_array())
        np.testing.assert_array_equal(shown, wanted_colours(member, steps - 1))
    with pytest.raises(gerd.GerdError, match="count 17: allowed with 6 members: 1 to 16"):
        figure.family(members, count=17)


def test_two_swept_fields_are_rows_and_columns(members: list[Recording]) -> None:
    once = figure.family(members, count=1)
    rows = np.array([ax for ax in once.axes if ax.images]).reshape(2, 3)
    assert words_of(rows[0]) == ["time_scale=0.5", "steps=6", "steps=4", "steps=3"]
    assert words_of(rows[1]) == ["time_scale=2"]
    assert [ax.get_title() for ax in rows[1]] == ["step 3", "step 2", "step 1"]
    np.testing.assert_array_equal(np.asarray(rows[1, 0].images[0].get_array()), wanted_colours(members[3], 3))
    alike = figure.family(members[:1] * 2, count=1)  # no table, and the same step
    assert alike.get_suptitle() == "index 0, 2 members, step 3"
    assert [ax.get_title() for ax in alike.axes] == ["time_scale=0.5,\nsteps=6"] * 2


def test_a_window_shows_the_events_of_several_steps_together(members: list[Recording]) -> None:
    """The square has moved by 1/4 of a pixel per step: it is a pixel farther after four steps."""
    slow = members[0]
    panel = figure.family([slow], count=2, window=4).axes
    assert [ax.get_title() for ax in panel] == ["", ""]
    assert words_of(panel) == [plot.caption(slow, separator="\n"), "steps 0 to 3", "steps 2 to 5"]
    for ax, span in zip(panel, (range(4), range(2, 6)), strict=True):
        wanted = np.zeros((12, 20), int)
        for step in span:
            off, on = slow.frames(step, step + 1)[0].numpy()
            wanted |= off + 2 * on
        np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), np.array(EVENTS)[wanted])
    shares = figure.family(members[:3], count=1, window=0.5)  # of 6, 4 and 3 steps
    assert [ax.get_title().rsplit(",\n", 1)[1] for ax in shares.axes[:3]] == [
        "steps 2 to 4",
        "steps 1 to 2",
        "steps 1 to 2",
    ]
    for wrong in (0, 7, 1.5, -0.5):
        with pytest.raises(
            gerd.GerdError, match=f"window {wrong:g}: allowed: a whole number from 1 to 6, the steps of "
        ):
            figure.family([slow], window=wrong)


def test_the_clouds_of_a_family(members: list[Recording], tmp_path: Path) -> None:
    drawn = figure.clouds(members)
    axes = np.array(drawn.axes).reshape(2, 3)
    assert words_of(axes[0]) == ["time_scale=0.5", "steps=6", "steps=4", "steps=3"]
    for ax, member in zip(axes.flat, members, strict=True):
        step, _, _ = ax.collections[0]._offsets3d
        np.testing.assert_array_equal(np.asarray(step) * 1000, member.events["t"])
    render(members, tmp_path / "clouds.png", "cloud")
    assert Image.open(tmp_path / "clouds.png").width > 500


def test_no_legend_covers_what_is_drawn(noisy: Recording) -> None:
    for draw in (plot.events, plot.rate, plot.cloud):
        ax = draw(noisy)
        ax.figure.canvas.draw()
        legend, box = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.y0 >= box.y1 - 0.5 or legend.y1 <= box.y0 + 0.5
        assert legend.y0 >= 0
        assert legend.y1 <= ax.figure.bbox.y1
        if draw is not plot.cloud:
            assert ax.title.get_window_extent().y0 >= legend.y1 - 1
        pyplot.close(ax.figure)


def test_the_name_is_in_every_picture(square: Recording, tmp_path: Path) -> None:
    for kind, draw in figure.KINDS.items():
        assert draw(square).get_suptitle() == "index 0", kind
    other = gerd.simulate(square.config.to_yaml(), 41)  # the same events, without a random number in them
    assert other.digest == square.digest
    for recording, name in ((square, "a"), (other, "b")):
        render(recording, tmp_path / f"{name}.gif", zoom=8)
    (one, two) = (pictures_of(tmp_path / f"{name}.gif")[0] for name in "ab")
    strip = 96 + video.LINE
    np.testing.assert_array_equal(one[:strip], two[:strip])
    assert (one[strip:] != two[strip:]).any()


# All kinds, all sizes


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_recording_can_be_shown(kind: str, tmp_path: Path) -> None:
    """One pixel, one step, nobody there, nothing happens."""
    nothing = simulated(width=1, height=1, steps=1)
    for path in [tmp_path / f"out{ending}" for ending in (VIDEOS if kind == "video" else (".png",))]:
        render(nothing, path, kind)
        assert path.stat().st_size > 0


@pytest.mark.parametrize(("width", "height", "actors"), [(1280, 720, 10), (2, 300, 1), (1000, 3, 1)])
def test_large_and_narrow_frames(width: int, height: int, actors: int, tmp_path: Path) -> None:
    crowd = [actor("circle", at=[100.0 * i, 50.0 * i], velocity=[3.0, 1.0], size=90.0) for i in range(actors)]
    recording = simulated(*crowd, width=width, height=height, steps=2, upsampling=2)
    render(recording, tmp_path / "out.gif", overlay=True)
    render(recording, tmp_path / "out.png", count=2, overlay=True)
    assert len(pictures_of(tmp_path / "out.gif")) == 2
    with Image.open(tmp_path / "out.png") as opened:
        assert 0.05 < opened.width / opened.height < 20


@pytest.mark.parametrize("ending", STILLS)
def test_stills_are_what_they_say_and_always_the_same(ending: str, noisy: Recording, tmp_path: Path) -> None:
    first, again = tmp_path / f"first{ending}", tmp_path / f"again{ending.upper()}"
    for path in (first, again):
        render(noisy, path, "frame", step=2, overlay=True)
    assert first.read_bytes() == again.read_bytes()
    if ending == ".png":
        with Image.open(first) as opened:
            colours = set(map(tuple, np.asarray(opened.convert("RGB")).reshape(-1, 3).tolist()))
        assert {ON, OFF, BACKDROP} <= colours
    elif ending == ".svg":
        assert xml.etree.ElementTree.parse(first).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    else:
        assert first.read_bytes().startswith(b"%PDF-")


def test_a_sheet_has_as_many_frames_as_wanted(square: Recording) -> None:
    drawn = figure.sheet(square, count=4)
    assert [ax.get_title() for ax in drawn.axes if ax.images] == ["step 0", "step 2", "step 3", "step 5"]
    assert [ax.get_title() for ax in figure.sheet(square, count=50).axes if ax.images] == [
        f"step {i}" for i in range(6)
    ]
    assert len(figure.stages(square.window(1), count=2).axes) == 2 * 8 + 3  # and two colour bars and a legend
    assert [len(ax.lines) for ax in figure.curves(square).axes] == [1] * 18


# Mistakes


@pytest.mark.parametrize(
    ("name", "kind", "options", "message"),
    [
        ("a.jpg", None, {}, "a.jpg: the file to write must end in one of .gif, .mp4, .png, .svg, .pdf"),
        ("a", None, {}, "a: the file to write must end in one of"),
        ("a.png", "film", {}, "kind 'film': allowed: video, frame, sheet, cloud, rate, curves, parameters, stages"),
        ("a.png", "video", {}, "a.png: a file of the kind video must end in one of .gif, .mp4"),
        ("a.gif", "rate", {}, "a.gif: a file of the kind rate must end in one of .png, .svg, .pdf"),
        ("a.png", "rate", {"zoom": 2}, "zoom: is no option of the kind rate, which has none"),
        (
            "a.png",
            "sheet",
            {"side_by_side": True},
            "side-by-side: is no option of the kind sheet; its options are count",
        ),
        ("a.png", "sheet", {"count": 0}, "count 0: allowed: a whole number from 1 to 100"),
        ("a.png", "frame", {"step": 6}, "step 6: the recording has 6"),
        ("a.png", None, {"start": 6}, "steps 6 up to 6: there are none; the recording has 6 steps"),
        ("a.gif", None, {"fps": 0.0}, "frames per second 0.0: allowed:"),
        ("a.gif", None, {"fps": float("nan")}, "frames per second nan: allowed:"),
        ("a.gif", None, {"zoom": 0}, "zoom 0: allowed:"),
        ("no/a.gif", None, {}, "no/a.gif: cannot be written: there is no folder "),
        ("no/a.png", None, {}, "no/a.png: cannot be written: there is no folder "),
        ("folder.gif", None, {}, "folder.gif: cannot be written: it is a folder"),
    ],
)
def test_mistakes_are_told(
    name: str, kind: str | None, options: Any, message: str, square: Recording, tmp_path: Path
) -> None:
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(gerd.GerdError) as told:
        render(square, tmp_path / name, kind, **options)
    assert str(told.value).removeprefix(f"{tmp_path}/").startswith(message)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.gif"]


def test_pictures_have_a_largest_size(tmp_path: Path) -> None:
    wide = simulated(width=300, height=2, steps=1)
    with pytest.raises(gerd.GerdError, match=r"zoom 32: makes pictures of 9600×\d+ pixels; allowed: up to"):
        render(wide, tmp_path / "a.gif", zoom=32)


def test_without_ffmpeg_a_user_is_told_what_to_install(
    square: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(gerd.GerdError, match=re.escape("pip install 'gerd-events[video]'")):
        render(square, tmp_path / "a.mp4")


def test_a_failure_of_ffmpeg_is_told(square: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "ffmpeg"
    broken.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(video, "ffmpeg", lambda: str(broken))
    with pytest.raises(gerd.GerdError, match=r"a\.mp4: cannot be written: no space left"):
        render(square, tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == [broken]


@pytest.mark.parametrize("ending", VIDEOS)
def test_what_is_interrupted_leaves_the_old_file(ending: str, square: Recording, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")
    done = []

    def stop(_: int) -> None:
        done.append(1)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(square, path, progress=stop)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# Notebooks


def test_a_notebook_shows_a_small_video_and_the_facts() -> None:
    recording = simulated(actor(velocity=[0.1, 0.0]), width=400, height=30, steps=130)
    shown = recording._repr_html_()
    (data,) = re.findall(r'src="data:image/gif;base64,([^"]+)"', shown)
    with Image.open(io.BytesIO(base64.b64decode(data))) as opened:
        assert 10 < opened.n_frames < 130  # not every step
        assert 100 < opened.width < 400  # nor every pixel
    for fact in ("400×30 px", "130 of 1000 µs", f"{len(recording)}: ", recording.digest[:16]):
        assert fact in shown
    assert len(shown) < 200_000


def test_a_notebook_is_not_confused_by_what_is_set() -> None:
    config = gerd.parse("steps: 2\nactors: [{shape: square}]\n")
    shown = gerd.simulate(config, **{"actors.0.shape": {"text": "<&>"}})._repr_html_()
    assert "&lt;&amp;&gt;" in shown
    xml.etree.ElementTree.fromstring(re.sub(r"<img[^>]*>", "", shown))
    star = [[float(np.cos(i)), float(np.sin(i))] for i in range(2000)]
    assert len(gerd.simulate(config, **{"actors.0.shape": {"polygon": star}})._repr_html_()) < 100_000
