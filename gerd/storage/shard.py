"""Recordings to the bytes of one shard, which `work.py` writes, and back.

A shard is a safetensors file of n recordings, each cut into blocks of `block_steps` steps (the last may be shorter).
The blocks of all recordings follow each other. `blocks.py` says what the bytes of a block are.

    index, member            (n,) int64          recording index, and member of the family
    shape                    (n, 5) int64        steps, height, width, actors, ticks per step
    block_steps              (n,) int64          steps of a block
    blocks                   (blocks, 7) uint64  bytes of ground truth, their checksum; bytes of events, their
                                                 checksum; events, `bits` of a key, `count_bytes`
    detail_blocks            (blocks, 4) uint64  bytes of details, their checksum, `source_bits`, `delay_bytes`; as
                                                 `details`, it is there only if a block has any (see `details.py`)
    digest                   (n, 32) uint8       sha256 of the events
    checksum                 (1,) uint64         of all bytes of the file before it
    truth                    uint8               the ground truth of each block
    events                   uint8               keys and background flags of each block
    details                  uint8               sources and delays of events of each block

and one metadata entry `gerd`, JSON: format_version, gerd_version, code_digest, config_digest, seed, and for each
recording its step_us and its labels. Checksums are XXH3 with 64 bits. Every byte that is read was compared with one, so
that a flipped bit is an error and never a wrong number. Nothing here is ever unpickled or run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import LARGEST_KEY
from gerd.config.config import Config
from gerd.config.sweep import member, member_count
from gerd.errors import StorageError, shorten
from gerd.events.keys import Keys
from gerd.recording.recording import FORMAT_VERSION, Recording
from gerd.storage.blocks import TARGET, Truth, block_steps, in_order
from gerd.storage.content import Content, packed_blocks
from gerd.storage.manifest import Manifest
from gerd.storage.places import File
from gerd.storage.tensors import CHECKSUM, read_header, tensors_bytes

LARGEST_EXTENT = 2**31  # steps, height, width and actors
UNREADABLE = (ValueError, IndexError, MemoryError)  # what reading damaged blocks gives
FOREIGN = "is not a recording of the dataset's config"


def shard_bytes(
    recordings: Sequence[Recording], members: Sequence[int], code_digest: str, target: int = TARGET
) -> bytes:
    """A shard as the bytes of its file, with blocks of at most `target` bytes: the same whoever writes it."""
    sizes = [block_steps(r.steps, len(r), r.actors, target) for r in recordings]
    blocks = list(packed_blocks(recordings, sizes))
    detailed = any(block.details for block in blocks)
    tensors: dict[str, NDArray[Any] | list[bytes]] = {
        "index": np.array([r.identity.index for r in recordings], np.int64),
        "member": np.array(members, np.int64),
        "shape": np.array([(r.steps, r.height, r.width, r.actors, r.codec.ticks) for r in recordings], np.int64),
        "block_steps": np.array(sizes, np.int64),
        "blocks": np.array([block.entry for block in blocks], np.uint64),
        **({"detail_blocks": np.array([block.detail_entry for block in blocks], np.uint64)} if detailed else {}),
        "digest": np.array([list(bytes.fromhex(r.digest)) for r in recordings], np.uint8),
        CHECKSUM: np.zeros(1, np.uint64),
        "truth": [block.truth for block in blocks],
        "events": [block.events for block in blocks],
        **({"details": [block.details for block in blocks]} if detailed else {}),
    }
    first = recordings[0].identity
    about = {
        "format_version": FORMAT_VERSION,
        "gerd_version": first.gerd_version,
        "code_digest": code_digest,
        "config_digest": first.config_digest,
        "seed": first.seed,
        "step_us": [r.step_us for r in recordings],
        "labels": [r.identity.labels for r in recordings],
    }
    try:
        return tensors_bytes(tensors, about)
    except ValueError as error:
        raise StorageError(f"index {first.index} and following: cannot be stored: {error}") from None


class Shard:
    """One shard; reads only what is asked for, and compares it with its checksum."""

    def __init__(self, file: File):
        self.path = file.name
        try:
            tensors, about = read_header(file)
            self.format_version = about["format_version"]
            self.code_digest = about["code_digest"]
            self.config_digest = about["config_digest"]
            self.gerd_version = about["gerd_version"]
            self.seed = about["seed"]
            self.step_us = about["step_us"]
            self.labels = about["labels"]
            if self.format_version != FORMAT_VERSION:
                raise ValueError(f"it has format version {shorten(self.format_version)}, not {FORMAT_VERSION}")
            self.content = Content(file, tensors)
            self.index, self.member, digests = (tensors[name].whole() for name in ("index", "member", "digest"))
            self.shape, self.lengths = self.content.shape, self.content.lengths
            self._shapes = self.shape.tolist()
            self.digests = tuple(digest.tobytes().hex() for digest in digests)
            if not self._fits(digests.shape):
                raise ValueError("its parts do not fit each other")
        except KeyError as error:
            raise StorageError(f"{self.path}: is damaged: {error} is missing") from None
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError) as error:
            raise StorageError(f"{self.path}: is damaged: {error}") from None
        except MemoryError:
            raise StorageError(f"{self.path}: is damaged: its header does not fit into the memory") from None

    def _fits(self, digests: tuple[int, ...]) -> bool:
        """Whether all tensors have the same number of recordings, of sizes that are possible."""
        n = len(self.index)
        if not (self.shape.shape == (n, 5) and ((self.shape >= 0) & (self.shape <= LARGEST_EXTENT)).all()):
            return False
        return (
            len(self.member) == len(self.lengths) == n
            and digests == (n, 32)
            and isinstance(self.step_us, list)
            and isinstance(self.labels, list)
            and len(self.step_us) == len(self.labels) == n
            and all(type(step_us) is int for step_us in self.step_us)
            and all(type(labels) is dict for labels in self.labels)
            and bool((self.shape[:, [0, 1, 2, 4]] > 0).all())
            and all(2 * math.prod((*row[:3], row[4])) <= LARGEST_KEY for row in self._shapes)
        )

    def __len__(self) -> int:
        return len(self.index)

    def difference(self, number: int, manifest: Manifest) -> str | None:
        """What sets this apart from shard `number` of the dataset of this manifest, if anything does."""
        wanted = [divmod(row, manifest.members) for row in manifest.rows(number)]
        if list(zip(self.index, self.member, strict=True)) != wanted:
            rows = manifest.rows(number)
            return f"does not hold the rows {rows.start} to {rows.stop - 1} of this dataset"
        for key in ("format_version", "config_digest", "seed", "gerd_version", "code_digest"):
            own, listed = getattr(self, key), getattr(manifest, key)
            if own != listed:
                return f"does not belong to this dataset: its {key} is {shorten(own)}, that of the manifest {listed!r}"
        return None

    def recording(self, row: int, config: Config) -> Recording:
        """The recording in row `row`; StorageError if it is not what was written."""
        return self.window(row, config, 0, self._shapes[row][0])

    def window(self, row: int, config: Config, start: int, stop: int) -> Recording:
        """The steps from `start` up to `stop` of a recording; no blocks but theirs are read."""
        steps, height, width, _, ticks = self._shapes[row]
        if not 0 <= start <= stop <= steps:
            raise StorageError(f"{self.path}: row {row} has the steps 0 to {steps - 1}, not {start} to {stop - 1}")
        own = self._config(row, config)
        codec = Keys(height, width, ticks)
        try:
            covered, keys, source, delay, truth = self.content.window(row, start, stop)
            base = codec.moved(0, covered.start)
            span = codec.moved(0, len(covered))
            if not in_order(keys, base, span, own.timing == "step"):
                raise ValueError("has changed")
        except UNREADABLE as error:
            raise self._damaged(row, error) from None
        if covered != range(start, stop):
            low, high = codec.bounds(keys, [start, stop])
            keys, source = keys[low:high], source[low:high]
            delay = None if delay is None else delay[low:high]
        from_start = codec.moved(keys, -start).astype(np.int64, copy=False)
        index = int(self.index[row])
        return Recording.of(own, index, truth, from_start, source, delay, first=start, made_by=self.gerd_version)

    def truth(self, row: int) -> Truth:
        """(steps, actors, 3, 6): the ground truth of a recording, without its events."""
        try:
            return self.content.truth(row)
        except UNREADABLE as error:
            raise self._damaged(row, error) from None

    def _config(self, row: int, family: Config) -> Config:
        """The config of the recording in a row; StorageError if the family's config describes another one."""
        number = int(self.member[row])
        if 0 <= number < member_count(family):
            config = member(family, number)
            shape = [config.steps, config.sensor.height, config.sensor.width, len(config.cast), config.ticks]
            stored = self.labels[row], self._shapes[row], self.step_us[row]
            if stored == (config.origin.labels, shape, config.step_us):
                return config
        raise self._damaged(row, FOREIGN)

    def _damaged(self, row: int, problem: str | Exception) -> StorageError:
        what = "does not fit into the memory" if isinstance(problem, MemoryError) else problem
        return StorageError(f"{self.path}: is damaged: index {self.index[row]}, member {self.member[row]}, {what}")
