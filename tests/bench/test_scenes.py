"""That the answers can be known: characters that no motion confuses, an L with one T, shapes in the frame that move."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import gerd
from gerd.bench import Task

SIDE = 48  # pixels of the pictures that characters are compared in
Array = NDArray[np.float64]


def rings_of(task: Task) -> dict[str, list[Array]]:
    """The outlines of the polygons of a task's last actor, by their names; each a list of rings of vertices."""
    shape = task.config.resolved()["actors"][-1]["shape"]
    result = {}
    for each in shape.get("choice", [shape]):
        rings = each["polygon"]
        result[each["name"]] = [np.array(ring) for ring in (rings if isinstance(rings[0][0], list) else [rings])]
    return result


def picture(rings: list[Array], degrees: float, shear: float) -> NDArray[np.bool_]:
    """A character that was sheared and turned, drawn by Pillow about its centre of mass."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ np.array([[1, shear], [0, 1]])
    drawn = Image.new("1", (SIDE, SIDE))
    for number, ring in enumerate(rings):  # the second ring is a hole
        points = ring @ turn.T * SIDE * 0.55 + SIDE / 2
        ImageDraw.Draw(drawn).polygon([tuple(point) for point in points.tolist()], fill=int(number == 0))
    pixels = np.asarray(drawn)
    row, column = (round(SIDE / 2 - places.mean()) for places in np.nonzero(pixels))
    return np.roll(pixels, (row, column), (0, 1))


def overlap(one: NDArray[np.bool_], others: NDArray[np.bool_]) -> float:
    """The largest share that a picture has in common with one of the others, moved by up to two pixels."""
    shares = []
    for shift in itertools.product((-2, 0, 2), repeat=2):
        moved = np.roll(one, shift, (0, 1))
        shares.append(((moved & others).sum((1, 2)) / (moved | others).sum((1, 2))).max())
    return float(max(shares))


def test_no_turn_or_shear_makes_one_character_another() -> None:
    characters = rings_of(gerd.bench.task("classify"))
    assert "".join(sorted(characters)) == "47ACFKRTYZ"
    ways = list(itertools.product(range(0, 360, 15), (-0.6, 0, 0.6)))
    seen = {name: np.stack([picture(rings, *way) for way in ways]) for name, rings in characters.items()}
    plain = {name: picture(rings, 0, 0) for name, rings in characters.items()}
    for name, other in itertools.permutations(characters, 2):
        assert overlap(plain[name], seen[other]) < 0.7, f"{name} and {other}"
        assert overlap(plain[name], seen[name]) > 0.99
    six = [np.array([[-0.4, -0.5], [-0.2, -0.5], [-0.2, 0], [0.4, 0], [0.4, 0.5], [-0.4, 0.5]])]
    nine = [-six[0]]  # what would be confused is seen to be
    assert overlap(picture(six, 0, 0), picture(nine, 180, 0)[None]) > 0.9


def test_only_one_map_takes_the_l_onto_itself() -> None:
    """An affine map takes vertices to vertices, and three of them say which map it is."""
    ((name, rings),) = rings_of(gerd.bench.task("transform")).items()
    (vertices,) = rings
    assert name == "L"
    ones = np.c_[vertices, np.ones(len(vertices))]
    found = []
    for chosen in itertools.permutations(range(len(vertices)), 3):
        if abs(np.linalg.det(ones[list(chosen)])) < 1e-9:
            continue
        matrix = np.linalg.solve(ones[[0, 2, 4]], vertices[list(chosen)])  # 0, 2 and 4 are not on a line
        images = ones @ matrix
        onto_itself = all(np.abs(vertices - image).sum(1).min() < 1e-9 for image in images)
        if onto_itself and np.linalg.det(matrix[:2]) > 0:
            found.append(chosen)
    assert found == [(0, 2, 4)]


@pytest.mark.parametrize("name", ["locate", "transform", "classify"])
def test_the_shape_is_in_the_frame_and_has_events_at_every_amount(name: str) -> None:
    """In each recording of a few, also before the first step that counts."""
    for split in gerd.bench.splits(name, quick=True):
        if split.kind != "test":
            continue
        for recording in gerd.simulate_batch(split.config, range(3)):
            assert (recording.positions > 0).all()
            assert (recording.positions < 64).all()
            assert recording.visibility().min() > 0.5
            edges = recording.coordinates[recording.source == 0, 0]
            assert (edges <= (split.first_step or 16)).sum() > 20, split.name
            assert len(edges) > 100


@pytest.mark.parametrize("name", ["flow", "noise"])
def test_edges_and_noise_are_there_at_every_amount(name: str) -> None:
    for split in gerd.bench.splits(name, quick=True):
        if split.kind != "test":
            continue
        for recording in gerd.simulate_batch(split.config, range(3)):
            counts = [int((recording.source == 0).sum()), int((recording.source != 0).sum())]
            assert min(counts) > 5, split.name
            assert counts[0] > 150
            assert np.isfinite(recording.event_flow[recording.source == 0]).all()
