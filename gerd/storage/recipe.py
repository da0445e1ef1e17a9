"""Recipes: a dataset without its data, in one file, from which it is made again and compared.

A recipe is a JSON file with the text of the small files of a dataset: its manifest, with the sha256 of every file and
of the events of every recording, and its config. Whoever has it makes the data where they are needed, and knows that
they are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gerd.config.config import Config
from gerd.config.sweep import member_count
from gerd.errors import StorageError
from gerd.files import read_regular
from gerd.storage.generate import generate
from gerd.storage.json_files import RepeatedKeyError, json_bytes, parsed_json
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, Manifest, read_manifest
from gerd.storage.places import LARGEST_FILE, MissingError
from gerd.storage.recordings import Recordings, check_complete, read_config
from gerd.storage.whole import write_whole
from gerd.storage.work import Progress

FORMAT = "gerd recipe"
FILES = (MANIFEST, CONFIG, RESOLVED)
SHOWN = 5  # differences that are listed one by one


@dataclass(frozen=True)
class Recipe:
    """What a dataset is made from, and what it has to be."""

    name: str  # of the file
    manifest: Manifest
    config: Config

    def differences(self, made: Recordings) -> Iterator[str]:
        """What sets a dataset that was made apart from the one that the recipe was written for."""
        wanted = self.manifest
        for number, (theirs, ours) in enumerate(zip(wanted.shards, made.manifest.shards, strict=True)):
            rows = zip(wanted.rows(number), theirs.recordings, ours.recordings, strict=True)
            others = [row for row, one, other in rows if one != other]
            yield from (f"recording {row} has other events" for row in others)
            if not others and theirs.sha256 != ours.sha256:
                yield f"{ours.file}: the ground truth is another, or the layout of the file"


class _Texts:
    """The files in a recipe, as the place of a dataset that has no others."""

    def __init__(self, name: str, texts: dict[str, str]):
        self._name, self._texts = name, texts

    def __str__(self) -> str:
        return self._name

    def at(self, name: str) -> str:
        return f"{self._name}, {name}"

    def exists(self) -> bool:
        return True

    def names(self) -> set[str]:
        return set(self._texts)

    def read(self, name: str, *, most: int = LARGEST_FILE) -> bytes:
        if name not in self._texts:
            raise MissingError(f"{self.at(name)}: is not there")
        data = self._texts[name].encode()
        if len(data) > most:
            raise StorageError(f"{self.at(name)}: has {len(data)} bytes; at most {most} are read")
        return data


def write_recipe(dataset: str | Path, file: str | Path) -> Recipe:
    """Write the recipe of a complete dataset, and read it again."""
    data = Recordings(dataset)
    check_complete(data)
    if data.recorded:
        raise StorageError(f"{dataset}: its events were recorded by a camera; a recipe makes simulated ones only")
    try:
        texts = {name: data.place.read(name).decode() for name in FILES}
    except UnicodeDecodeError:
        raise StorageError(f"{dataset}: is damaged: its files are no text; gerd verify says what is wrong") from None
    write_whole(Path(file), json_bytes({"format": FORMAT, "files": texts}))
    return read_recipe(file)  # an error if a file of the dataset was changed


def read_recipe(file: str | Path) -> Recipe:
    """A recipe, all of it checked; a stranger's runs nothing."""
    try:
        content = parsed_json(read_regular(file, LARGEST_FILE))
    except OSError as error:
        raise StorageError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (RepeatedKeyError, ValueError, RecursionError) as error:
        raise StorageError(f"{file}: is no recipe: {str(error).splitlines()[0]}") from None
    texts = content.get("files") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(texts, dict) or not all(isinstance(texts.get(name), str) for name in FILES):
        raise StorageError(f"{file}: is no recipe of gerd; gerd recipe DATASET FILE writes one")
    place = _Texts(str(file), texts)
    manifest = read_manifest(place)
    for name in (CONFIG, RESOLVED):
        if hashlib.sha256(place.read(name)).hexdigest() != manifest.files.get(name):
            raise StorageError(f"{place.at(name)}: differs from the sha256 in the manifest")
    config = read_config(place, manifest, str(file), texts[CONFIG])
    listed = [len(entry.recordings) for entry in manifest.shards]
    if manifest.members != member_count(config) or listed != _lengths(manifest):
        raise StorageError(f"{place.at(MANIFEST)}: does not list the {manifest.recordings} recordings that it counts")
    return Recipe(str(file), manifest, config)


def _lengths(manifest: Manifest) -> list[int]:
    """How many recordings each shard has to list."""
    return [len(manifest.rows(number)) for number in range(manifest.shard_count)]


def make(
    recipe: str | Path,
    out: str | Path,
    *,
    workers: int | None = None,
    device: str | None = None,
    progress: Progress = lambda made: None,
) -> Recordings:
    """Make the dataset of a recipe in `out`, as `generate` does, and compare it; an error if it is another one."""
    wanted = read_recipe(recipe)
    made = generate(wanted.config, out, wanted.manifest.count, workers=workers, device=device, progress=progress)
    found = list(wanted.differences(made))
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        theirs, ours = (each.code_digest[:12] for each in (wanted.manifest, made.manifest))
        code = f". It is of gerd {wanted.manifest.gerd_version}, code {theirs}; here is code {ours}"
        whose = code if theirs != ours else ""
        raise StorageError(f"{out}: is not the dataset of {recipe}: {'; '.join(found[:SHOWN])}{more}{whose}")
    return made
