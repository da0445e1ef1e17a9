"""Files of the paper authors' program (gerd 0.5.1), read as events and positions in the conventions of this one.

Such a `.dat` file is what `torch.save([images, labels], file)` writes, one file for each recording:

- images: a sparse COO tensor (steps, 2, x, y), float, 1 where there is an event. The frame's first axis is x and its
  second is y, although the program calls its resolution "WxH" and a picture has rows first. The channels come from the
  difference "frame before minus frame now": channel 0, which the program calls positive, holds what became darker, and
  channel 1, called negative, what became brighter. Made with `polarity: false` there is one channel, of both.
- labels: a tensor (steps, shapes, 2), float: x and y of each shape's centre in pixels. The shapes are a circle, a
  square and a triangle.

Nothing in a file is run: PyTorch loads it with `weights_only`, which knows tensors and refuses everything else.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gerd.calls import explained
from gerd.errors import GerdError, StorageError, check_whole
from gerd.events.keys import Keys
from gerd.files import read_regular
from gerd.recording.events import LARGEST_SIDE, Events

if TYPE_CHECKING:
    import torch

LARGEST_FILE = 2**32  # bytes of a file
LAST_TIME = 2**63 - 1  # microseconds: t is a 64-bit number
FOREIGN = "is not a file of gerd 0.5.1"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OriginalRecording(Events):
    """What one `.dat` file holds: x to the right, y down, p = 1 brighter; the events of a step have its time."""

    positions: NDArray[np.float64]  # (steps, shapes, 2): x and y of each shape's centre, in pixels
    has_polarity: bool  # False: the file has one channel for both, and p is 1 everywhere

    def _rest_of_window(self, steps: slice, events: slice) -> dict[str, NDArray[np.float64]]:  # noqa: ARG002
        return {"positions": self.positions[steps]}


@explained
def read_original(path: str | Path, *, step_us: int = 1000) -> OriginalRecording:
    """Return the recording in a `.dat` file of gerd 0.5.1. The file does not say how long a step is: give `step_us`."""
    check_whole("step_us", step_us, 1)
    images, labels = _loaded(Path(path))
    steps, channels, width, height = images.shape
    if max(width, height) > LARGEST_SIDE:
        frame = f"it has frames of {width}×{height} pixels"
        raise StorageError(f"{path}: is damaged: {frame}; allowed: up to {LARGEST_SIDE}×{LARGEST_SIDE}")
    if steps * step_us > LAST_TIME:
        allowed = f"a whole number from 1 to {LAST_TIME // steps} for the {steps} steps of {path}"
        raise GerdError(f"step_us {step_us}: allowed: {allowed}")
    images = images.coalesce()
    step, channel, x, y = images.indices()[:, images.values() != 0].numpy()
    for values, size in ((step, steps), (channel, channels), (x, width), (y, height)):
        if len(values) and not 0 <= values.min() <= values.max() < size:
            raise StorageError(f"{path}: is damaged: it has events outside its frame")
    p = channel if channels == 2 else np.ones_like(channel)
    keys = np.sort(Keys(height, width).encoded(step, y, x, p))
    return OriginalRecording(
        width=width,
        height=height,
        steps=steps,
        step_us=step_us,
        exact=False,
        keys=keys,
        source=np.zeros(len(keys), np.uint8),
        title=Path(path).name,
        positions=labels.double().numpy(),
        has_polarity=channels == 2,
    )


def _loaded(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """The two tensors of a file, their types and shapes checked."""
    import torch

    try:
        data = io.BytesIO(read_regular(path, LARGEST_FILE))
    except FileNotFoundError:
        raise StorageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        content = torch.load(data, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, LookupError, ValueError, TypeError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise StorageError(f"{path}: {FOREIGN}, or is damaged: {why}") from None
    if not (isinstance(content, list | tuple) and len(content) == 2 and all(map(torch.is_tensor, content))):
        raise StorageError(f"{path}: {FOREIGN}: it does not hold a list of two tensors")
    images, labels = content
    sparse = images.layout == torch.sparse_coo and images.dim() == images.sparse_dim() == 4
    if not sparse or images.shape[1] not in (1, 2):
        raise StorageError(f"{path}: {FOREIGN}: its first tensor is not sparse (steps, 1 or 2, x, y)")
    if labels.dim() != 3 or labels.shape[0] != images.shape[0] or labels.shape[2] != 2:
        raise StorageError(f"{path}: {FOREIGN}: its second tensor is not (steps, shapes, 2)")
    return images, labels
