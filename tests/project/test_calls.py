"""Calls with wrong arguments: one sentence that names the function, the argument, and those that there are."""

from __future__ import annotations

import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest

import gerd
from gerd import measure, transformation
from gerd.training.items import ItemOptions

TEXT = """
sensor: {width: 24, height: 16}
steps: 6
actors: [{shape: square, translation: {velocity: [1, 0.5], acceleration: 0}, scale: {start: 6, acceleration: 0}}]
"""
TURNED = transformation.rotation(30)


def model(frames: Any) -> Any:
    return frames.sum((-1, -2))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> gerd.Dataset:
    path = tmp_path_factory.mktemp("calls") / "data"
    gerd.generate(TEXT, path, 3, workers=1)
    return gerd.Dataset(path)


CALLS: list[tuple[Callable[[gerd.Dataset], Any], str]] = [
    (
        lambda _: gerd.simulate(TEXT, sed=3),
        r"simulate: there is no argument sed, and no such field; did you mean s",
    ),
    (lambda _: gerd.simulate(TEXT, devise="cpu"), r"did you mean device\? its arguments are config, index, member"),
    (lambda _: gerd.simulate_family(TEXT, stepz=3), r"simulate_family: there is no argument stepz.* you mean steps\?"),
    (lambda _: gerd.simulate_chunks(TEXT, chunks=3), r"simulate_chunks: .* did you mean chunk\?"),
    (lambda _: gerd.simulate(TEXT, **{"noise.shap": 0}), r"noise\.shap: no such field; did you mean shape\?"),
    (lambda _: gerd.load("x.yaml", override=[]), r"load: there is no argument override; did you mean overrides\?"),
    (lambda _: gerd.generate(TEXT, "out"), r"generate: missing a required argument: 'count'; its arguments are conf"),
    (lambda _: gerd.generate(TEXT, "out", 3, worker=1), r"generate: there is no argument worker; did you mean workers"),
    (lambda _: gerd.Stream(TEXT), r"Stream: missing a required argument: 'batch_size'; its arguments are config, bat"),
    (lambda _: gerd.Stream(TEXT, 2, lable="T"), r"Stream: there is no argument lable; did you mean label\?"),
    (lambda _: gerd.Stream(TEXT, 2, label="position"), r"label 'position': did you mean positions\? allowed: posit"),
    (lambda _: gerd.Stream(TEXT, 2, item="frame"), r"item 'frame': did you mean frames\? allowed: frames, counts"),
    (lambda _: gerd.Stream(TEXT, 2)[0], r"a stream has no items to number; allowed: stream\.batch\(0\)"),
    (lambda _: gerd.Stream(TEXT, 2).loader(num_worker=1), r"loader: no option num_worker; did you mean num_workers\?"),
    (lambda data: gerd.Dataset(data.name, sums=2), r"Dataset: there is no argument sums; did you mean sum\? .* tau_us"),
    (lambda _: gerd.EventFiles("*.raw", stepz=2), r"EventFiles: there is no argument stepz; did you mean steps\?"),
    (lambda data: data["a"], r"data: item 'a': allowed: a whole number"),
    (lambda data: data.recordings["a"], r"data: row 'a': allowed: a whole number, or a slice"),
    (lambda data: data.loader(), r"loader: missing a required argument: 'batch_size'"),
    (lambda data: data.loader(0), r"batch_size 0: allowed: a whole number, 1 or more"),
    (lambda data: data.loader(2, suffle=True), r"loader: no option suffle; did you mean shuffle\? allowed: pad, shu"),
    (lambda _: measure.equivariance_error(model, TEXT, TURNED, cuont=3), r"equivariance_error: .* you mean count\?"),
    (lambda _: measure.accuracy_curve(model, TEXT, [TURNED], counts=3), r"accuracy_curve: .* did you mean count\?"),
    (lambda _: measure.assert_flat(model, TEXT, [TURNED], tolerance=3), r"assert_flat: there is no argument tolerance"),
    (lambda _: transformation.rotation("90"), r"rotation '90': allowed: a finite number"),
    (lambda _: transformation.rotation(), r"rotation: missing a required argument: 'degrees'; its arguments are deg"),
    (lambda _: transformation.translation((3, 4)), r"translation \(3, 4\): allowed: a finite number"),
    (lambda _: transformation.density("half"), r"density 'half': allowed: a finite number"),
    (lambda _: transformation.affine((1, 2), (3, 4)), r"affine \(1, 2\), \(3, 4\): allowed: two rows of three numbers"),
    (lambda _: transformation.composed("rotation"), r"composed: 'rotation': allowed: transformations"),
    (lambda _: TURNED.then(30), r"then: 30: allowed: transformations, such as transformation\.rotation\(30\)"),
    (lambda _: gerd.parse(TEXT, overrides="steps=3"), r"overrides: got 'steps=3': allowed: a list of path=value"),
    (lambda _: gerd.simulate_batch(TEXT, 3), r"indices 3: allowed: several numbers, such as \[0, 1, 2\]"),
    (lambda _: gerd.render(TEXT, "a.gif", fps="a"), r"frames per second 'a': allowed: a finite number"),
    (
        lambda data: gerd.render(data.name, "a.gif"),
        r"data: is a folder; allowed: a recording, such as gerd\.Recordings",
    ),
    (lambda data: data.where("speed"), r"the predicate is 'speed'; allowed: a function of a recording"),
    (lambda data: gerd.Dataset(data.name, transform=3), r"transform 3: allowed: a function, or None"),
    (lambda _: gerd.models.ScaleChannels(["a"]), r"mu 'a': allowed: a finite number"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_a_wrong_call_is_explained(call: Callable[[gerd.Dataset], Any], message: str, data: gerd.Dataset) -> None:
    with pytest.raises(gerd.GerdError) as told:
        call(data)
    assert re.search(message, str(told.value))
    assert "\n" not in str(told.value)


def test_an_error_inside_a_good_call_stays_what_it_is(data: gerd.Dataset) -> None:
    """A user's own TypeError is not taken for a wrong call."""

    def label(recording: gerd.Recording) -> Any:
        return len(recording.config)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="Config"):
        gerd.Stream(TEXT, 2, label=label, ahead=0).batch(0)
    with pytest.raises(IndexError):  # which a for loop takes as the end
        data[3]


@pytest.mark.parametrize("kind", [gerd.Dataset, gerd.Stream, gerd.EventFiles])
def test_help_has_every_option(kind: type) -> None:
    told = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    for name in ("item", "label", "steps", *ItemOptions.__annotations__):
        assert re.search(rf"^ \|  (\w+, )*{name}(, \w+)*: ", told, re.MULTILINE), name
