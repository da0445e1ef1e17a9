"""All backends give the same bits, and go on giving the bits they once gave.

The `cuda` backend runs on a GPU where there is one, and otherwise in Triton's interpreter, at small sizes.
"""

from __future__ import annotations

import json
import multiprocessing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenes import SHAPES, actor, casts, config, small_configs, thresholds

import gerd
from gerd.config.config import Config
from gerd.config.sweep import labels, member_count
from gerd.errors import GerdError
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw

ROOT = Path(__file__).parents[2]
GPU = torch.cuda.is_available()
CUDA = "cuda" if GPU else "cpu"  # the device on which the `cuda` backend runs here
GOLDEN_DIGESTS = json.loads((Path(__file__).with_name("golden.json")).read_text())
takes_minutes_without_a_gpu = (lambda test: test) if GPU else pytest.mark.long
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")


def same(one: Recording, other: Recording) -> bool:
    return np.array_equal(one.keys, other.keys) and np.array_equal(one.source, other.source)


def golden_recording(name: str, backend: str, device: str = "cpu") -> Recording:
    """`name` is config/index/member, or config/index/member/exact."""
    stem, index, member, *timing = name.split("/")
    overrides = ["timing=exact"] if timing else []
    chosen = gerd.load(ROOT / "configs" / f"{stem}.yaml", overrides=overrides)
    return gerd.simulate(chosen, int(index), backend=backend, device=device, **labels(chosen, int(member)))


def test_every_config_has_golden_digests() -> None:
    expected = set()
    for path in (ROOT / "configs").glob("*.yaml"):
        last = member_count(gerd.load(path)) - 1
        expected |= {f"{path.stem}/{index}/{member}" for index in (0, 1) for member in {0, last}}
        expected.add(f"{path.stem}/0/{last}/exact")
    assert set(GOLDEN_DIGESTS) == expected
    assert all(
        set(digests) == {"cpu", "cuda"} and len(set(digests.values())) == 1 for digests in GOLDEN_DIGESTS.values()
    )


@pytest.mark.parametrize("name", GOLDEN_DIGESTS)
def test_golden_digests(name: str) -> None:
    """Those in golden.json are of events that were made once, on a CPU and on a GPU; a change of any bit shows here."""
    if not name.endswith("exact"):  # on a CPU, the definition takes half a minute for some of them
        assert golden_recording(name, "torch").digest == GOLDEN_DIGESTS[name]["cpu"]
    assert golden_recording(name, "cpu").digest == GOLDEN_DIGESTS[name]["cpu"]
    if GPU:
        assert golden_recording(name, "cuda", "cuda").digest == GOLDEN_DIGESTS[name]["cuda"]
        assert golden_recording(name, "torch", "cuda").digest == GOLDEN_DIGESTS[name]["cuda"]


@st.composite
def wider_configs(draw: Any) -> Config:
    """Larger frames, finer grids and more actors than the oracle has the patience for."""
    width, height = draw(st.sampled_from([(1, 1), (64, 64), (65, 31), (129, 7), (300, 40), (3, 90)]))
    noises = st.sampled_from([0.0, 0.002, 0.1, 1.0])
    return config(
        *draw(casts(width, height, 5)),
        width=width,
        height=height,
        seed=draw(st.integers(0, 2**64 - 1)),
        steps=draw(st.integers(1, 12)),
        upsampling=draw(st.sampled_from([1, 3, 8, 32])),
        timing=draw(st.sampled_from(["step", "exact"])),
        integrator={
            "initial": draw(st.sampled_from(["usual", "uniform", "stationary"])),
            "threshold": draw(thresholds(st.sampled_from([0.05, 0.5, 1.3]))),
            "reset": draw(st.sampled_from(["subtract", "zero"])),
            "warmup": draw(st.integers(0, 5)),
        },
        noise={"background": draw(noises), "shape": draw(noises), "event": draw(noises)},
    )


@settings(max_examples=50)
@given(st.one_of(small_configs(), wider_configs()), st.integers(0, 2**32 - 1), st.sampled_from([None, 1, 3]))
def test_cpu_is_the_definition(any_config: Config, index: int, chunk: int | None) -> None:
    truth = gerd.simulate(any_config, index, backend="torch")
    assert same(truth, gerd.simulate(any_config, index, backend="cpu", chunk=chunk))


@needs_triton
@takes_minutes_without_a_gpu
@settings(max_examples=200 if GPU else 4)
@given(st.one_of(small_configs(), wider_configs()) if GPU else small_configs(), st.sampled_from([None, 2]))
def test_cuda_is_the_definition(any_config: Config, chunk: int | None) -> None:
    truth = gerd.simulate_batch(any_config, [3, 2**32 - 1], backend="torch")
    made = gerd.simulate_batch(any_config, [3, 2**32 - 1], backend="cuda", device=CUDA, chunk=chunk)
    assert all(same(one, other) for one, other in zip(truth, made, strict=True))


CROWDED = config(
    actor("circle", at=[8.3, 4.4], velocity=[1.1, 0.3], size=7.0, intensity=0.5),
    actor({"choice": ["circle", SHAPES["hole"]]}, at=[11.2, 5.1], velocity=[-0.6, 0.2], size=6.5, turn=20.0),
    actor("triangle", at=[16.1, 3.3], velocity=[0.4, 0.0], size=7.0, border="wrap", repeat={"choice": [0, 1]}),
    width=20,
    height=8,
    upsampling=2,
    steps=2,
    noise={"background": 0.05, "shape": 0.1, "event": 0.2},
)


@needs_triton
def test_cuda_with_everything_at_once() -> None:
    """Overlapping, concave and wrapping shapes, all noises, a frame wider than a tile; in one piece and in chunks."""
    assert gerd.simulate(CROWDED, 1).shapes == ["circle", "polygon 1", "triangle"]
    truth = gerd.simulate(CROWDED, 1, backend="torch")
    for chunk in (None, 1) if GPU else (1,):  # without a GPU the test of frames has it in one piece
        assert same(truth, gerd.simulate(CROWDED, 1, backend="cuda", device=CUDA, chunk=chunk))


@needs_triton
def test_cuda_in_exact_timing() -> None:
    from gerd.events.cuda import run as cuda

    slow: dict[str, Any] = {"velocity": [0.22, 0.1], "size": 5.0}
    made = config(
        actor("circle", at=[5.3, 4.4], intensity=0.5, **slow),
        actor({"choice": ["triangle", SHAPES["hole"]]}, at=[14.2, 4.1], **slow),
        width=18,
        height=9,
        upsampling=2,
        steps=3,
        timing="exact",
        integrator={"threshold": 0.05, "warmup": 1, "initial": "stationary"},
        noise={"background": 0.05, "shape": 0.1, "event": 0.2},
    )
    truth = gerd.simulate(made, 1, backend="torch")
    assert len(truth) > 30
    for budget in (None, 4500) if GPU else (4500,):  # so little that integrators are carried from piece to piece
        pieces = list(cuda.run(draw(plan_of(made), [1]), CUDA, budget=budget))
        assert np.array_equal(np.concatenate([part.keys for part in pieces]), truth.keys)
        assert np.array_equal(np.concatenate([part.source for part in pieces]), truth.source)


@needs_triton
@pytest.mark.parametrize(
    ("timing", "initial", "reset", "rules"),
    [
        ("step", "uniform", "subtract", {}),
        ("step", "stationary", "zero", {"response": {"log": 0.2}, "refractory_us": 2000}),
        ("exact", "stationary", "subtract", {"response": {"log": 0.2}}),
        ("exact", "uniform", "zero", {"refractory_us": 300}),
        ("exact", "stationary", "subtract", {"refractory_us": 700, "leak_hz": 200}),
        ("exact", "stationary", "subtract", {"leak_hz": 200}),
        ("step", "uniform", "subtract", {"leak_hz": 200}),
    ],
)
def test_cuda_with_thresholds_of_each_pixel(timing: str, initial: str, reset: str, rules: dict[str, Any]) -> None:
    """A frame that is no whole number of tiles; events, and frames on the device; other rules of the pixel, too."""
    from gerd.events.cuda import run as cuda

    made = config(
        actor("circle", at=[8.3, 4.4], velocity=[0.4, 0.3], size=7.0, intensity=0.8),
        width=18,
        height=9,
        upsampling=2,
        steps=3,
        timing=timing,
        camera={"number": 3},
        integrator={
            "threshold": {"on": 0.1, "off": 0.2, "spread": 0.05},
            **rules,
            "initial": initial,
            "reset": reset,
            "warmup": 1,
        },
    )
    truth = gerd.simulate(made, 1, backend="torch")
    assert truth.events["p"].any()
    assert not truth.events["p"].all()
    assert same(truth, gerd.simulate(made, 1, backend="cuda", device=CUDA, chunk=2))
    frames = cuda.frames(draw(plan_of(made), [1]), CUDA, counts=True)[0].cpu()
    assert torch.equal(frames, truth.frames(counts=True))


@needs_triton
def test_cuda_frames_are_the_frames() -> None:
    from gerd.events.cuda import run as cuda

    made = cuda.frames(draw(plan_of(CROWDED), [1, 0]), CUDA)
    assert made.dtype == torch.bool
    assert made.shape == (2, 2, 2, 8, 20)
    for row, index in enumerate((1, 0)):  # the second has other shapes, and no triangle
        assert torch.equal(made[row].cpu(), gerd.simulate(CROWDED, index, backend="torch").frames())


@pytest.mark.skipif(not GPU, reason="needs a GPU")
def test_batches_do_not_wait_for_each_other_and_are_the_same() -> None:
    """Outlines of the next batch are worked out on another stream while the one before is still being written."""
    from gerd.events.cuda import run as cuda

    made = gerd.load(ROOT / "configs" / "bouncing.yaml")
    batches = [range(first, first + 40) for first in range(0, 400, 40)]
    alone = []
    for batch in batches:
        alone.append(cuda.frames(draw(plan_of(made), batch), CUDA).cpu())
        torch.cuda.synchronize()
    in_a_row = [cuda.frames(draw(plan_of(made), batch), CUDA) for batch in batches]
    assert all(torch.equal(frames.cpu(), known) for frames, known in zip(in_a_row, alone, strict=True))


@needs_triton
def test_cuda_keeps_to_a_budget() -> None:
    from gerd.events.cuda import run as cuda

    resetting = config(actor(velocity=[0.7, 0.3]), height=8, steps=4, integrator={"threshold": 0.2, "reset": "zero"})
    scenes = draw(plan_of(resetting), [0, 1])
    pieces = list(cuda.run(scenes, CUDA, budget=5000))
    for row in range(2):
        keys = [part.keys for part in pieces if part.row == row]
        assert len(keys) > 1
        assert np.array_equal(np.concatenate(keys), gerd.simulate(resetting, row, backend="torch").keys)
    with pytest.raises(GerdError, match="device memory"):
        list(cuda.run(scenes, CUDA, budget=100))


def _digest_in_worker(_: int) -> str:
    return gerd.simulate(gerd.load(ROOT / "configs" / "square.yaml"), 1, backend="cpu").digest


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_cpu_backend_in_loader_workers(method: str) -> None:
    """The kernels run in a DataLoader's workers, also when the parent has run them before the fork."""
    expected = _digest_in_worker(0)
    loader = torch.utils.data.DataLoader(
        range(2),  # type: ignore[arg-type]
        batch_size=None,
        num_workers=2 if method == "fork" else 1,  # the others import everything anew
        collate_fn=_digest_in_worker,
        multiprocessing_context=multiprocessing.get_context(method),
    )
    assert list(loader) == [expected] * 2
