"""The choice of a backend: scenes in, events or frames out.

Every backend gives the same bits: `torch` is the definition, on any device; `cpu` (numba) and `cuda` (Triton) are fast.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import FINEST
from gerd.errors import GerdError
from gerd.events.keys import Keys, add_events
from gerd.events.pixel.surroundings import has_surroundings, surrounded
from gerd.events.shared import Chunk
from gerd.scene.scenes import Scenes

if TYPE_CHECKING:
    from torch import Tensor

OLDEST_TRITON = (3, 3)
FINEST_ON_GPU = 32  # upsampling: the kernels of a GPU have the sub-pixels of a pixel's sub-row as the bits of a word
MEMORY_OF_WORKER = 2**32  # bytes of a GPU


def run(
    scenes: Scenes, *, device: str = "cpu", backend: str | None = None, chunk: int | None = None
) -> Iterator[Chunk]:
    """The events of a batch of scenes, `chunk` steps at a time; the parts of a recording come in order of time.

    Without the name of a backend, the fast one of the device is taken; on a GPU only if Triton is installed.
    """
    if chunk is not None and (not isinstance(chunk, int) or chunk < 1):
        raise GerdError(f"chunk {chunk}: allowed: a whole number of steps, 1 or more")
    check_device(device)
    chosen = backend or _fastest(device, scenes.upsampling)
    if _have_own_cameras(scenes):
        alone = [_run(scenes[row : row + 1], device, chosen, chunk) for row in range(len(scenes))]
        made: Iterator[Chunk] = chain.from_iterable(map(_in_row, range(len(scenes)), alone))
    else:
        made = _run(scenes, device, chosen, chunk)
    return surrounded(scenes, made) if has_surroundings(scenes.pixel) else made


def _have_own_cameras(scenes: Scenes) -> bool:
    """Whether each recording has thresholds of its own, so that it has to be made alone."""
    return scenes.pixel.camera is None and scenes.pixel.spread > 0


def _in_row(row: int, parts: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks of a recording that was made alone."""
    return (part._replace(row=row) for part in parts)


def run_pictures(
    scenes: Scenes, counts: Iterator[NDArray[np.int32]], times_us: NDArray[np.int64], *, device: str = "cpu"
) -> Iterator[Chunk]:
    """The events of a batch of one before pictures that somebody else made, by the definition: see `others.py`."""
    from gerd.events.definition import others

    check_device(device)
    made = others.run(scenes, counts, times_us, device)
    return surrounded(scenes, made) if has_surroundings(scenes.pixel) else made


def _run(scenes: Scenes, device: str, backend: str, chunk: int | None) -> Iterator[Chunk]:
    if backend == "cpu" and device == "cpu":
        from gerd.events.cpu import run as cpu

        return cpu.run(scenes, chunk)
    if backend == "cuda" and (device.startswith("cuda") or os.environ.get("TRITON_INTERPRET") == "1"):
        if scenes.upsampling > FINEST_ON_GPU:
            got = f"upsampling: got {scenes.upsampling}: allowed with the backend cuda"
            raise GerdError(f"{got}: up to {FINEST_ON_GPU}; with torch on any device, and cpu: up to {FINEST}")
        from gerd.events.cuda import run as cuda

        return cuda.run(scenes, device, chunk)
    if backend == "torch":
        from gerd.events.definition import walk as definition

        return definition.run(scenes, device, chunk)
    allowed = "allowed: torch on any device, cpu on the device cpu, cuda on a cuda device"
    raise GerdError(f"backend {backend!r} on device {device!r}: {allowed}")


def frames(scenes: Scenes, device: str = "cpu", counts: bool = False) -> Tensor:
    """The events of scenes as frames (recordings, steps, 2, height, width) on the device, boolean or uint8 counts."""
    import torch

    if makes_frames(device, scenes.upsampling) and not has_surroundings(scenes.pixel):
        from gerd.events.cuda import run as cuda

        if _have_own_cameras(scenes):
            return torch.cat([cuda.frames(scenes[row : row + 1], device, counts) for row in range(len(scenes))])
        return cuda.frames(scenes, device, counts)
    codec = Keys.of(scenes)
    shape = (len(scenes), scenes.steps, 2, scenes.height, scenes.width)
    result: NDArray[np.uint8] | NDArray[np.bool_] = np.zeros(shape, np.uint8 if counts else np.bool_)
    for part in run(scenes, device=device):
        add_events(result[part.row].reshape(-1), codec.places(part.keys))
    return torch.from_numpy(result).to(device)


def makes_frames(device: str, upsampling: int) -> bool:
    """Whether frames are made on the device itself, without a list of events."""
    return _fastest(device, upsampling) == "cuda"


def needs_compiling(scenes: Scenes) -> bool:
    """Whether the fast backend of the CPU would have to compile its kernels first, which takes many seconds."""
    from gerd.events.cpu import run as cpu

    return not cpu.are_kept(scenes.exact)


def check_device(device: str) -> None:
    """A clear error if PyTorch cannot compute on `device`; the CPU is not worth importing PyTorch for."""
    if device == "cpu":
        return
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        if reason.startswith(("Expected one of", "Invalid device string")):
            raise GerdError(f"device {device!r}: allowed: cpu, cuda, cuda:1 …, mps, other devices of PyTorch") from None
        raise GerdError(f"device {device!r}: cannot be used: {reason}") from None


def workers_of_device(device: str) -> int:
    """How many processes may make recordings on a device that is not the CPU, so that its memory is enough for all."""
    import torch

    if not device.startswith("cuda"):
        return 1
    return max(1, torch.cuda.get_device_properties(device).total_memory // MEMORY_OF_WORKER)


def _fastest(device: str, upsampling: int) -> str:
    """The name of the fastest backend for a device that has so fine a grid."""
    kind = str(device).partition(":")[0]
    if kind == "cpu" or (kind == "cuda" and upsampling <= FINEST_ON_GPU and _compiles_for_gpus()):
        return kind
    return "torch"


@cache
def _compiles_for_gpus() -> bool:
    """Whether there is a Triton that can compile the kernels: it takes their named tuples from 3.3 on."""
    if find_spec("triton") is None:
        return False
    import triton

    return tuple(map(int, triton.__version__.split(".")[:2])) >= OLDEST_TRITON
