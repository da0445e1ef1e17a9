"""Which recordings to export: a dataset or a config, indices and a member go in; recordings come out, by row.

A row is index · members + member, as in a dataset. Those of a dataset are read; those of a config are simulated when
they are asked for, and are the ones that a dataset of the config would have there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gerd.config.config import Config
from gerd.config.sweep import Which, member_count, member_number
from gerd.errors import GerdError
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate
from gerd.scene.draw import MOST_INDICES
from gerd.storage.recordings import Recordings, check_complete
from gerd.version import __version__


@dataclass(frozen=True)
class Chosen:
    """Recordings of one config."""

    config: Config  # with its sweep
    gerd_version: str  # that made them
    rows: Sequence[int]  # ascending
    all_of_dataset: bool
    recording: Callable[[int], Recording]  # by row

    def __len__(self) -> int:
        return len(self.rows)


def choose(source: str | Path | Config, indices: Sequence[int] | None, member: Which | None) -> Chosen:
    """The recordings of a dataset or a config with these indices, of one member or of all.

    Without indices all of a dataset, and index 0 of a config.
    """
    if isinstance(source, Config):
        family = source
        name = source.origin.document.source
        count = MOST_INDICES
        made_by = __version__
        indices = [0] if indices is None else indices
    else:
        data = Recordings(source)
        check_complete(data)
        family = data.config
        name = str(data.path)
        count = data.manifest.count
        made_by = data.manifest.gerd_version
    members = member_count(family)
    numbers = range(members) if member is None else [member_number(family, member)]
    asked = range(count) if indices is None else sorted(set(indices))
    if wrong := [index for index in indices or () if not 0 <= index < count]:
        raise GerdError(f"{name}: index {wrong[0]}: allowed: 0 to {count - 1}")
    if not asked:
        raise GerdError(f"{name}: indices: got none; allowed: 0 to {count - 1}")

    def recording(row: int) -> Recording:
        return simulate(family, *divmod(row, members)) if isinstance(source, Config) else data[row]

    rows = [index * members + number for index in asked for number in numbers]
    return Chosen(family, made_by, rows, indices is None and member is None, recording)
