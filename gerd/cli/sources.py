"""What the commands work on: the words of the command line in; a config, recordings, or events of a file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gerd.cli.terminal import say
from gerd.errors import GerdError

if TYPE_CHECKING:
    from gerd.config.config import Config
    from gerd.exchange.reading import ReadOptions
    from gerd.recording.events import Events
    from gerd.recording.recording import Recording


def load_config(path: Path, overrides: Sequence[str] | None, trust: bool, *, scene: bool = True) -> Config:
    """The config in a file, with what `--set` says; without `scene` it need not have actors."""
    from gerd.config.load import load
    from gerd.exchange.reading import is_event_file

    if is_event_file(path):
        raise GerdError(f"{path}: is a file of events; allowed: a config, which is YAML")
    return load(path, overrides=overrides or (), trust=trust, scene=scene)


def recordings_of(
    source: Path, index: int, member: Sequence[str] | None, family: bool, overrides: Sequence[str] | None, trust: bool
) -> list[Recording]:
    """The recording of a config or a dataset that an index and a member name, or all members of the index."""
    from gerd.page.render import family_of
    from gerd.recording.simulate import simulate
    from gerd.storage.recordings import NOT_CHANGED, Recordings

    if not source.is_dir():
        config = load_config(source, overrides, trust)
        return family_of(config, index) if family else [simulate(config, index, member_of(config, member))]
    if overrides:
        raise GerdError(f"{source}: {NOT_CHANGED}")
    data = Recordings(source)
    return data.family(index) if family else [data.at(index, member_of(data.config, member))]


def member_of(config: Config, words: Sequence[str] | None) -> int:
    """The number of the member that --member names; if it is not given the first, and a line says so."""
    from gerd.cli.words import parse_member
    from gerd.config.sweep import in_words, labels, member_count, member_number

    which = parse_member(words or ())
    count = member_count(config)
    if which is None and count > 1:
        say(f"member 0 of {count}, {in_words(labels(config, 0))}; the others: --member 1 to {count - 1}", err=True)
    return member_number(config, 0 if which is None else which)


def events_in(source: Path, read: Sequence[str] | None, **chosen: object) -> Events | None:
    """The events in a file, read as `--read` says, or None if `source` is a config or a dataset.

    chosen: options of the command that choose a recording of a config, none of which goes with a file of events.
    """
    from gerd.exchange.reading import read_events

    options = read_options(source, read, **chosen)
    return None if options is None else read_events(source, **options)


def read_options(source: Path, read: Sequence[str] | None, **chosen: object) -> ReadOptions | None:
    """How the file of events is to be read, or None if `source` is a config or a dataset; see `events_in`."""
    from gerd.cli.words import parse_read
    from gerd.exchange.reading import is_event_file

    if not is_event_file(source):
        if read:
            raise GerdError(f"--read {read[0]}: goes with a file of events, which {source} is not")
        return None
    for name, value in chosen.items():
        if value:
            raise GerdError(f"--{name}: {source} is a file of events; allowed with a config or a dataset")
    return parse_read(read or ())
