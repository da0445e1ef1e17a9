"""Events of a real, empty scene: an .npz file in, its events as arrays out, once for all recordings that need them.

The file is one that `gerd export --format npz` writes: arrays t (microseconds, ascending), x, y, p, width and height.
It is known by the sha256 of its bytes, and a file with others is refused.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.files import read_regular
from gerd.plan.plan import RecordedNoise

Whole = NDArray[np.int64]

MOST_BYTES = 2**34  # of the file, and of what is packed in it
HOW = "write it with gerd export FILE OUT.npz --format npz"


@dataclass(frozen=True, eq=False)
class EmptyScene:
    """The events of a file, in order of time."""

    name: str
    width: int
    height: int
    length_us: int  # from the first event to the last
    us: Whole  # of each event, since the first
    x: Whole
    y: Whole
    p: Whole

    def between(self, start: int, stop: int, height: int, width: int) -> tuple[Whole, Whole, Whole, Whole]:
        """Time, y, x and p of the events from `start` up to `stop` in the middle of the frame; the file goes round."""
        if width > self.width or height > self.height:
            size = f"{self.width}×{self.height} pixels"
            raise _refused(self.name, f"has a frame of {size}; allowed with this sensor: {width}×{height} or more")
        down, right = (self.height - height) // 2, (self.width - width) // 2
        parts = []
        for turn in range(start // self.length_us, -(-stop // self.length_us)):
            moved = turn * self.length_us
            some = slice(*np.searchsorted(self.us, [start - moved, stop - moved]))
            us, y, x, p = self.us[some] + moved, self.y[some] - down, self.x[some] - right, self.p[some]
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            parts.append(np.stack([us, y, x, p])[:, inside])
        us, y, x, p = np.concatenate(parts, axis=1) if parts else np.empty((4, 0), np.int64)
        return us, y, x, p


def events_of(noise: RecordedNoise) -> EmptyScene:
    """The events of a file, which has to be the one that a config names, and as long as a recording."""
    scene = _read(noise.path, noise.sha256)
    if scene.length_us < noise.least_us:
        raise _refused(noise.path, f"lasts {scene.length_us} µs; allowed with these steps: {noise.least_us} or more")
    return scene


@lru_cache(maxsize=2)
def _read(path: str, sha256: str) -> EmptyScene:
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise _refused(
            path, f"cannot be read, but is needed: {error.strerror or error}; its sha256 is {sha256}"
        ) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _refused(path, f"is not the file that the config was read with, whose sha256 is {sha256}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sum(part.file_size for part in packed.infolist()) > MOST_BYTES:
                raise _refused(path, f"has more than {MOST_BYTES} bytes unpacked")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in ("t", "x", "y", "p", "width", "height")}
    except GerdError:
        raise
    except Exception as error:  # numpy, zipfile and zlib raise many kinds for what is no such file
        raise _refused(path, f"is no .npz file with t, x, y, p, width and height ({error}); {HOW}") from None
    return _checked(path, columns)


def _checked(path: str, columns: dict[str, NDArray[Any]]) -> EmptyScene:
    t, x, y, p = (columns[name] for name in "txyp")
    width, height = columns["width"], columns["height"]
    if {each.shape for each in (t, x, y, p)} != {(t.size,)} or width.size != 1 or height.size != 1:
        raise _refused(path, f"has arrays of other lengths; {HOW}")
    if any(each.dtype.kind not in "iub" for each in (t, x, y, p, width, height)):
        raise _refused(path, f"has arrays that are no whole numbers; {HOW}")
    t, x, y, p = (each.astype(np.int64) for each in (t, x, y, p))
    sound = t.size and (np.diff(t) >= 0).all() and ((x >= 0) & (x < width) & (y >= 0) & (y < height)).all()
    if not sound or not np.isin(p, (0, 1)).all():
        raise _refused(
            path, f"has no events, or some that are not in order, outside of the frame or of no polarity; {HOW}"
        )
    return EmptyScene(path, int(width), int(height), int(t[-1] - t[0]) + 1, t - t[0], x, y, p)


def _refused(path: str, why: str) -> GerdError:
    return GerdError(f"noise.recorded: {path} {why}")
