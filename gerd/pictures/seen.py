"""Videos and folders of pictures, as pixels see them: a path in, grey pictures with their times out, one by one.

ffmpeg goes through a video twice: once for the times of its pictures, and once for the pictures. Grey values are its
own, from black, 0, to white, 255. A folder has its pictures in the order of their names, in which 9 comes before 10.
"""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError, StorageError, shorten
from gerd.files import read_regular
from gerd.pictures.video import ffmpeg

GreyPicture = NDArray[np.generic]  # (height, width), of whatever numbers a file has

SECOND = 1_000_000
KINDS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".npy")
MOST_BYTES = 2**30  # of a file with a picture, or with times
TIMES = "timestamps.txt"  # seconds, a line for each picture, as gerd export --format frames writes it
NOTHING_ELSE = ("-protocol_whitelist", "file")  # a file that names others, or addresses, opens none of them


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures with their times. They can be gone through once, (height, width) each."""

    times_us: NDArray[np.int64]
    frames: Iterator[GreyPicture]


def open_pictures(path: Path, fps: Fraction | None = None) -> Pictures:
    """The pictures of a video or of a folder; with `fps` so many of them in a second, whatever their own times are."""
    if path.is_dir():
        return _folder(path, fps)
    if not path.is_file():
        raise StorageError(f"{path}: there is no such video, and no such folder of pictures")
    times, size = _times_of_video(path)
    return Pictures(times if fps is None else _at_rate(len(times), fps), _video(path, size))


def _at_rate(count: int, fps: Fraction) -> NDArray[np.int64]:
    return np.array([round(number * SECOND / fps) for number in range(count)], np.int64)


def _folder(path: Path, fps: Fraction | None) -> Pictures:
    images = path / "imgs" if (path / "imgs").is_dir() else path
    files = [each for each in images.iterdir() if each.suffix.lower() in KINDS]
    if not files:
        raise StorageError(f"{images}: has no pictures; allowed: {', '.join(KINDS)}")
    files.sort(key=lambda each: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", each.name)])
    if fps is not None:
        return Pictures(_at_rate(len(files), fps), map(_picture, files))
    listed = next((each for each in (path / TIMES, images / TIMES) if each.is_file()), None)
    if listed is None:
        raise GerdError(f"{path}: has no {TIMES}, so the times of its pictures are not known; allowed: --fps")
    times = _times_in(listed)
    if len(times) != len(files):
        raise StorageError(f"{listed}: has {len(times)} times, and {images} {len(files)} pictures; allowed: as many")
    return Pictures(times, map(_picture, files))


def _times_in(path: Path) -> NDArray[np.int64]:
    """Times in seconds, one in each line."""
    result = []
    for number, line in enumerate(_bytes(path).decode("utf-8", "replace").splitlines(), 1):
        try:
            result.append(round(Fraction(line.strip()) * SECOND))
        except (ValueError, ZeroDivisionError):
            raise StorageError(f"{path}:{number}: {shorten(line)}; allowed: a time in seconds") from None
    return np.array(result, np.int64)


def _picture(path: Path) -> GreyPicture:
    """A picture as it is stored, in grey."""
    data = _bytes(path)
    if path.suffix.lower() == ".npy":
        try:
            array: GreyPicture = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise StorageError(f"{path}: is no array: {str(error).splitlines()[0]}") from None
        return array
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data))
        deep = image.mode == "F" or image.mode.startswith("I;16")
        return np.asarray(image if deep else image.convert("L"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise StorageError(f"{path}: is no picture that can be read: {str(error).splitlines()[0]}") from None


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from None


def _times_of_video(path: Path) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """When each picture is shown, from the first on, and their height and width."""
    unit = Fraction(0)
    size = (0, 0)
    ticks: list[int] = []
    with _running(path, "framecrc") as output:
        for line in output:
            word, _, rest = line.decode("ascii", "replace").partition(":")
            if word == "#tb 0":
                unit = Fraction(rest.strip())
            elif word == "#dimensions 0":
                width, height = map(int, rest.split("x"))
                size = height, width
            elif not word.startswith("#"):
                ticks.append(int(word.split(",")[2]))
    if not ticks:
        raise StorageError(f"{path}: has no pictures")
    return np.array([round((tick - ticks[0]) * unit * SECOND) for tick in ticks], np.int64), size


def _video(path: Path, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    length = size[0] * size[1]
    with _running(path, "rawvideo") as output:
        while data := output.read(length):
            if len(data) < length:
                raise StorageError(f"{path}: its last picture is cut off")
            yield np.frombuffer(data, np.uint8).reshape(size)


class _running:  # noqa: N801
    """What ffmpeg writes about a video, or what is in it; an error if it could not read it to the end."""

    def __init__(self, path: Path, written: str):
        self._path = path
        source = [*NOTHING_ELSE, "-i", f"file:{path}", "-map", "0:v:0"]
        kept = ["-vsync", "passthrough", "-enc_time_base", "-1", "-pix_fmt", "gray"]
        command = [
            ffmpeg(", or give a folder of pictures"),
            "-nostdin",
            "-v",
            "error",
            "-xerror",
            *source,
            *kept,
            "-f",
            written,
            "-",
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def __enter__(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        said = self._process.communicate()[1].decode(errors="replace").strip()
        if kind is None and (said or self._process.returncode):  # it goes on after what it could not decode
            last = said.splitlines()[-1] if said else f"ffmpeg stopped with code {self._process.returncode}"
            raise StorageError(f"{self._path}: is no video that can be read: {last}")
