"""Splits on disk: a folder with a dataset for each, made by `gerd.generate` and compared with its digest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gerd.bench.digests import Progress, digest_of, expected_digest
from gerd.bench.frozen import VERSION
from gerd.bench.split_table import Split
from gerd.bench.task_table import tasks
from gerd.calls import explained
from gerd.errors import StorageError, shorten
from gerd.storage.code import code_digest, other_code
from gerd.storage.generate import generate
from gerd.storage.recordings import Recordings

QUICK = "quick"


@explained
def make(
    out: str | Path,
    splits: Iterable[Split],
    *,
    device: str = "cpu",
    workers: int = 1,
    progress: Progress = lambda made: None,
) -> tuple[Path, ...]:
    """Write splits into a folder, each as a dataset; returns their folders.

    Continues what an interrupted call has left. Every dataset is read again and compared with its digest, one that was
    there before, too; it is an error if it has another. `workers` processes make a dataset.
    """
    if "://" in str(out):
        raise StorageError(f"{out}: allowed: a folder; gerd.generate writes the config of a split to object stores")
    folder = Path(out)
    _check_place(folder)
    return tuple(_made(folder, split, device, workers, progress) for split in splits)


def folder_of(split: Split) -> str:
    """Where below the folder of `make` a split is; the neutral test lies beside the others and not around them."""
    return f"{split.key}/neutral" if split.name == "test" else split.key


def _check_place(folder: Path) -> None:
    """An error unless this is a new folder, an empty one, or one that holds splits and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise StorageError(f"{folder}: is a file; give a folder")
    try:
        others = sorted({entry.name for entry in folder.iterdir()} - {*tasks(), QUICK})
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {error.strerror or error}") from None
    if others:
        raise StorageError(f"{folder}: holds other files, such as {shorten(others[0])}; give an empty or a new folder")


def _made(folder: Path, split: Split, device: str, workers: int, progress: Progress) -> Path:
    path = folder / folder_of(split)
    generate(split.config, path, split.count, device=device, workers=workers)
    check_dataset(path, split)
    progress(split.count)
    return path


def check_dataset(path: Path, split: Split) -> None:
    """An error unless the dataset at `path` has the digest of a split; all of it is read."""
    data = Recordings(path)
    found, wanted = digest_of(data), expected_digest(split)
    if found == wanted:
        return
    theirs = data.manifest.code_digest
    why = f"it {other_code(theirs)}" if theirs != code_digest() else "this version of gerd does not make its data"
    raise StorageError(f"{path}: is not {split.key} of version {VERSION}: {why} (digest {found}, not {wanted})")
