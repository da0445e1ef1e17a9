"""What is drawn on an Axes, read back from matplotlib, against closed forms; and that its colours can be told apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import matplotlib
import numpy as np
import pytest
from support.scenes import actor, simulated

import gerd
from gerd import plot
from gerd.pictures.colours import ACTORS, BACKDROP, BOX, OFF, ON, OUTLINE, PATH, Colour, shade
from gerd.plan.plan import INTENSITY_ONE
from gerd.recording.recording import Recording

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.collections import Collection
from matplotlib.colors import to_rgb

MOVING: dict[str, Any] = {"width": 20, "height": 12, "steps": 6, "upsampling": 4}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def square() -> Recording:
    """A square of 4 px whose centre is at (5 + t, 6)."""
    return simulated(actor(at=[5, 6], velocity=[1.0, 0.0], size=4.0), **MOVING)


def lines(ax: Any, colour: Colour) -> list[np.ndarray]:
    """The lines of this colour on an Axes, each (points, 2)."""
    return [np.asarray(line.get_xydata()) for line in ax.lines if np.allclose(to_rgb(line.get_color()), shade(colour))]


# Frames


def test_a_square_moving_right_is_blue_at_its_right_edge(square: Recording) -> None:
    ax = gerd.plot.events(square, 2)
    (image,) = ax.images
    colours = np.asarray(image.get_array())
    assert colours.shape == (12, 20, 3)
    assert (colours[4:8, 8] == ON).all()  # the right edge has gone from x = 8 to 9, rows 4 to 7
    assert (colours[4:8, 4] == OFF).all()  # and the left edge from x = 4 to 5
    colours[4:8, [4, 8]] = BACKDROP
    assert (colours == BACKDROP).all()
    assert image.get_extent() == [0, 20, 12, 0]
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 20), (12, 0))  # y points down
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("x (px)", "y (px)", "step 2")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ON (brighter)", "OFF (darker)"]


def test_a_dark_square_is_vermilion_there() -> None:
    dark = simulated(actor(at=[5, 6], velocity=[1.0, 0.0], size=4.0, intensity=-1.0), **MOVING)
    colours = np.asarray(plot.events(dark, 2).images[0].get_array())
    assert (colours[4:8, 8] == OFF).all()
    assert (colours[4:8, 4] == ON).all()
    grey = plot.brightness(dark, 2).images[0]
    assert grey.get_clim() == (-1.0, 1.0)
    assert (np.asarray(grey.get_array())[4:8, 5:9] == -1).all()


def test_steps_of_a_window_keep_their_numbers(square: Recording) -> None:
    window = square.window(2, 5)
    np.testing.assert_array_equal(plot.polarity_codes(window, 0), plot.polarity_codes(square, 2))
    assert plot.events(window, -1).get_title() == "step 4"
    assert plot.brightness(window, 0).get_title() == "step 2"


@pytest.mark.parametrize("step", [6, -7, 1000])
def test_steps_that_there_are_not(square: Recording, step: int) -> None:
    for draw in (plot.events, plot.brightness, plot.overlay):
        with pytest.raises(gerd.GerdError, match=f"step {step}: the recording has 6"):
            draw(square, step)


def test_large_frames_are_drawn_in_blocks() -> None:
    """No event is lost when a frame has more pixels than the picture."""
    recording = simulated(width=1001, height=7, steps=2, noise={"background": 0.003})
    colours = np.asarray(plot.events(recording, 1, detail=400).images[0].get_array())
    assert colours.shape == (3, 334, 3)
    step, y, x, p = recording.coordinates.T
    wanted = np.full(colours.shape, BACKDROP)
    for row, column, polarity in zip(y[step == 1], x[step == 1], p[step == 1], strict=True):
        wanted[row // 3, column // 3] = ON if polarity else OFF
    assert 10 < (step == 1).sum() == (wanted != BACKDROP).any(-1).sum()
    np.testing.assert_array_equal(colours, wanted)


def test_brightness_is_the_covered_share(square: Recording) -> None:
    image = plot.brightness(square, 1).images[0]
    expected = np.zeros((12, 20))
    expected[4:8, 4:8] = 1
    np.testing.assert_array_equal(image.get_array(), expected)
    assert image.get_clim() == (0.0, 1.0)


# Ground truth


def test_the_overlay_lies_where_the_closed_form_says() -> None:
    """A square at (5 + t, 6) and a circle of radius 2 at (14, 3 + t/2), at t = 3."""
    recording = simulated(
        actor(at=[5, 6], velocity=[1.0, 0.0], size=4.0),
        actor("circle", at=[14, 3], velocity=[0.0, 0.5], size=4.0),
        **MOVING,
    )
    ax = plot.overlay(recording, 3)
    corners, circle = lines(ax, OUTLINE)
    np.testing.assert_allclose(corners, [[6, 4], [10, 4], [10, 8], [6, 8], [6, 4]], atol=1e-12)
    np.testing.assert_allclose(np.hypot(*(circle - [14, 4.5]).T), 2.0)
    np.testing.assert_allclose(circle[0], circle[-1])
    first, second, centres = lines(ax, PATH)
    np.testing.assert_allclose(first, [[5, 6], [6, 6], [7, 6], [8, 6]])
    np.testing.assert_allclose(second, [[14, 3], [14, 3.5], [14, 4], [14, 4.5]])
    np.testing.assert_allclose(centres, [[8, 6], [14, 4.5]])
    boxes = [np.ravel(patch.get_bbox().get_points()) for patch in ax.patches]
    np.testing.assert_allclose(boxes, [[6, 4, 10, 8], [12, 2.5, 16, 6.5]], atol=1e-12)
    assert all(np.allclose(patch.get_edgecolor()[:3], shade(BOX)) for patch in ax.patches)


def test_on_a_torus_paths_are_cut_and_copies_are_drawn() -> None:
    """A square of 4 px at (18 + t) mod 20: at t = 1 its right edge is at 21, and a copy of it at 1."""
    recording = simulated(actor(at=[18, 6], velocity=[1.0, 0.0], size=4.0, border="wrap"), **MOVING)
    outlines = lines(plot.overlay(recording, 1), OUTLINE)
    assert sorted((ring[:, 0].min(), ring[:, 0].max()) for ring in outlines) == [(-3, 1), (17, 21)]
    before, after, _ = lines(plot.overlay(recording, 4), PATH)
    np.testing.assert_allclose(before, [[18, 6], [19, 6]])
    np.testing.assert_allclose(after, [[0, 6], [1, 6], [2, 6]])


# Over time


def test_the_cloud_is_the_events() -> None:
    recording = simulated(actor(velocity=[1.0, 0.3]), noise={"background": 0.02}, **MOVING).window(1)
    ax = plot.cloud(recording)
    (points,) = ax.collections
    step, x, y = (np.asarray(values) for values in points._offsets3d)
    events = recording.events
    np.testing.assert_array_equal(step * 1000, events["t"])
    np.testing.assert_array_equal(np.stack([x, y], axis=1), np.stack([events["x"], events["y"]], axis=1) + 0.5)
    wanted = np.where(events["p"][:, None], shade(ON), shade(OFF))
    np.testing.assert_allclose(Collection.get_facecolor(points)[:, :3], wanted)
    assert (ax.get_xlim(), ax.get_ylim(), ax.get_zlim()) == ((0.5, 5.5), (0, 20), (12, 0))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()) == ("step (1 ms each)", "x (px)", "y (px)")


def test_a_large_cloud_is_thinned_and_says_so() -> None:
    recording = simulated(noise={"background": 0.5}, **MOVING)
    ax = plot.cloud(recording, most=100)
    every = -(-len(recording) // 100)
    assert len(ax.collections[0]._offsets3d[0]) == len(recording.keys[::every]) <= 100
    assert ax.get_legend().get_title().get_text() == f"1 of {every} events shown"


def test_the_rate_counts_events() -> None:
    recording = simulated(actor(velocity=[1.0, 0.3]), noise={"background": 0.02}, **MOVING)
    ax = plot.rate(recording)
    on, off, noise = (patch.get_data().values for patch in ax.patches)
    rows = recording.coordinates
    for polarity, counted in ((1, on), (0, off)):
        np.testing.assert_array_equal(counted, [((rows[:, 0] == t) & (rows[:, 3] == polarity)).sum() for t in range(6)])
    np.testing.assert_array_equal(noise, [(rows[recording.background, 0] == t).sum() for t in range(6)])
    np.testing.assert_array_equal(ax.patches[0].get_data().edges, np.arange(7) - 0.5)
    assert len(plot.rate(simulated(actor(velocity=[1.0, 0.0]), **MOVING)).patches) == 2  # no noise, no line for it


@pytest.mark.parametrize(
    ("name", "values", "label"),
    [
        ("x", ([3 + 2 * t for t in range(4)], [2] * 4, [0] * 4), "x (px)"),
        ("rotation", ([10 + 9 * t for t in range(4)], [9] * 4, [0] * 4), "rotation (°)"),
        ("T02", ([3 + 2 * t for t in range(4)], [2] * 4, [0] * 4), "$T_{02}$ (px)"),
        (
            "T00",  # 4 cos r with r = 10° + 9° t
            tuple(
                [4 * k * np.radians(9) ** n * f(np.radians(10 + 9 * t)) for t in range(4)]
                for n, k, f in ((0, 1, np.cos), (1, -1, np.sin), (2, -1, np.cos))
            ),
            "$T_{00}$ (px)",
        ),
    ],
)
def test_curves_are_the_closed_forms(name: str, values: Any, label: str) -> None:
    turning = {"rotation": {"start": 10.0, "velocity": 9.0, "acceleration": 0.0}}
    recording = simulated(actor(at=[3, 6], velocity=[2.0, 0.0], size=4.0, **turning))
    for derivative, wanted in enumerate(values):
        ax = plot.curve(recording, name, derivative=derivative)
        np.testing.assert_allclose(ax.lines[0].get_xdata(), np.arange(4))
        np.testing.assert_allclose(ax.lines[0].get_ydata(), wanted, atol=1e-12)
        if np.ptp(wanted) == 0:
            assert np.ptp(ax.get_ylim()) > 1  # a constant is not blown up to its rounding
    assert plot.curve(recording, name).get_ylabel() == label
    assert plot.curve(recording, name, derivative=2).get_ylabel().endswith("/step²)")


def test_curves_of_what_wraps_around_have_a_gap() -> None:
    recording = simulated(actor(at=[18, 6], velocity=[1.0, 0.0], border="wrap"), **MOVING)
    np.testing.assert_array_equal(np.isnan(plot.curve(recording, "x").lines[0].get_ydata()), [0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize(("name", "derivative"), [("z", 0), ("T20", 0), ("x", 3), ("x", -1)])
def test_curves_that_there_are_not(square: Recording, name: str, derivative: int) -> None:
    with pytest.raises(gerd.GerdError, match=r"allowed: T00, .* shear, and as derivative 0, 1 and 2"):
        plot.curve(square, name, derivative=derivative)


# Stages


def test_stages_are_drawn_in_shares(square: Recording) -> None:
    stages = square.stages(1, 3)
    for name in plot.STAGES:
        ax = plot.stage(stages, name, 1)
        image = ax.images[0]
        drawn, values = np.asarray(image.get_array()), getattr(stages, name)[1]
        if values.dtype == bool:
            assert (drawn[values[1]] == ON).all()
            assert (drawn[~values.any(axis=0)] == BACKDROP).all()
        else:
            np.testing.assert_allclose(drawn, values / (INTENSITY_ONE if name == "picture" else stages.full))
            assert image.get_clim() == ((-1, 1) if name in ("difference", "integrator") else (0, 1))
        assert image.get_extent() == [0, 20, 12, 0]
        assert ax.get_title() == f"{plot.STAGES[name]}, step 2"
    low, middle, high = (plot.stage(stages, "difference", 1).images[0].to_rgba(v)[:3] for v in (-1.0, 0.0, 1.0))
    for colour, wanted in ((low, OFF), (middle, BACKDROP), (high, ON)):
        np.testing.assert_allclose(colour, shade(wanted), atol=0.01)
    with pytest.raises(gerd.GerdError, match="stage 'noise': allowed: picture, coverage"):
        plot.stage(stages, "noise")


def test_what_is_given_is_drawn_on(square: Recording) -> None:
    _, axes = pyplot.subplots(1, 5)
    flat = [
        plot.events(square, 1, axes[0]),
        plot.overlay(square, 1, axes[1]),
        plot.rate(square, axes[2]),
        plot.curve(square, "x", axes[3]),
        plot.stage(square.stages(), "fired", 0, axes[4]),
    ]
    assert flat == list(axes)
    assert len(pyplot.get_fignums()) == 1


def test_a_family_has_an_axes_for_each_member() -> None:
    text = "steps: 3\nsensor: {width: 9, height: 8}\nactors: [{shape: square}]\nsweep: {steps: [3, 2]}\n"
    for family in (text, gerd.parse(text), gerd.simulate_family(text)):
        axes = plot.family(family, 1)
        assert [ax.get_title() for ax in axes.flat] == ["steps=3, step 1", "steps=2, step 1"]
    _, own = pyplot.subplots(1, 3)
    assert plot.family(gerd.simulate_family(text), [2, 0], own) is own
    assert [ax.get_title() for ax in own] == ["steps=3, step 2", "steps=2, step 0", ""]


# Colours

MACHADO = {  # Machado, Oliveira & Fernandes 2009, complete lack of a cone, on linear RGB
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
TOLD_APART = 25.0  # CIE 1976 colour difference; 2.3 is just noticeable


def seen_apart(one: Any, other: Any, reader: str) -> float:
    """The CIE 1976 difference of two sRGB colours as a reader with this kind of colour vision sees them."""

    def lab(colour: Any) -> np.ndarray:
        share = np.array(colour) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        relative = XYZ @ np.clip(MACHADO[reader] @ linear, 0, 1) / XYZ.sum(axis=1)
        root = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative * (29 / 6) ** 2 / 3 + 4 / 29)
        return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])

    return float(np.linalg.norm(lab(one) - lab(other)))


@pytest.mark.parametrize("reader", MACHADO)
def test_colour_blind_readers_tell_the_colours_apart(reader: str) -> None:
    for one, other in (*combinations((ON, OFF, BACKDROP), 2), *((BOX, other) for other in (ON, OFF, PATH, BACKDROP))):
        assert seen_apart(one, other, reader) > TOLD_APART, (one, other)
    actors = [np.array(to_rgb(colour)) * 255 for colour in ACTORS]
    for one, other in product(actors, (ON, OFF, BACKDROP)):
        assert seen_apart(one, other, reader) > TOLD_APART, (one, other)
    for one, other in combinations(actors, 2):
        assert seen_apart(one, other, reader) > 0.8 * TOLD_APART, (one, other)


def test_not_all_colours_can_be_told_apart() -> None:
    red, green = (190, 60, 40), (100, 110, 40)
    assert seen_apart(red, green, "normal") > TOLD_APART > seen_apart(red, green, "deutan")
