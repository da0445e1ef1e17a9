"""The commands of `gerd` that measure: options in; printed numbers and pages out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from gerd.cli.completing import sources
from gerd.cli.options import ConfigFile, Index, Member, Overrides, Read, Trust
from gerd.cli.sources import events_in, load_config, member_of
from gerd.cli.terminal import say
from gerd.errors import GerdError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gerd.recording.events import Events

A_OR_B = "A config, a dataset, or a file of events."


def conform(
    emulator: Annotated[
        str,
        Argument(
            metavar="MODULE:FUNCTION",
            help="The emulator, a function of pictures and times; FILE.py:FUNCTION works, too.",
        ),
    ],
    config: ConfigFile,
    fps: Annotated[
        str, Option(metavar="N,N", help="Rates at which the emulator gets pictures, per second.")
    ] = "250,500,1000,2000,4000",
    window_us: Annotated[
        int | None,
        Option(min=0, help="How far apart matched events may be; default: the time between pictures, at least a step."),
    ] = None,
    index: Index = 0,
    member: Member = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Also write the numbers, after each rate: .json or .csv.")
    ] = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Give an emulator of event cameras the pictures of a scene, and compare its events with the exact ones.

    The line for each rate has the numbers of exact events and of the emulator's, the ratio of ON and of OFF events, the
    share of events that have their time in common with others (for the exact ones in brackets), the median and the
    95 % quantile of |Δt| of matched events, and the shares of events that the emulator misses and invents.
    """
    from gerd.cli.conforming import conform_to
    from gerd.cli.words import parse_rates

    rates = parse_rates(fps)
    chosen = load_config(config, set_, trust)
    conform_to(chosen, emulator, rates, out, index=index, member=member_of(chosen, member), window_us=window_us)


def compare(
    a: Annotated[Path, Argument(metavar="A", help=A_OR_B, autocompletion=sources)],
    b: Annotated[Path, Argument(metavar="B", help=A_OR_B, autocompletion=sources)],
    out: Annotated[Path | None, Option(help="Also write a page with a figure; its name must end in .html.")] = None,
    count: Annotated[
        int, Option("-n", "--count", min=1, help="The most recordings of a config or a dataset to use.")
    ] = 16,
    first: Annotated[int, Option(min=0, help="The first index of B, if it is a config or a dataset.")] = 0,
    same_scenes: Annotated[
        bool,
        Option("--same-scenes", help="Recording i of A and of B show the same at the same times: match their events."),
    ] = False,
    near_us: Annotated[
        int, Option(min=1, help="Events of one edge are at most this many microseconds apart; others are noise.")
    ] = 5000,
    read: Read = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Say in numbers how two sets of events differ, simulated or recorded, and which differences are not chance.

    --set and --first apply to B: `gerd compare c.yaml c.yaml --set noise.background=0.01` shows what a field changes.
    """
    from gerd.measures.comparison import compare as held_against
    from gerd.page.comparison import check, save_comparison

    if out is not None:
        check(out)
    ours, theirs = _recordings(a, 0, count, read, None, trust), _recordings(b, first, count, read, set_, trust)
    names = a.name, " ".join([b.name, *(set_ or ())])
    result = held_against(ours, theirs, names=names, same_scenes=same_scenes, near_us=near_us)
    say(str(result))
    if out is not None:
        save_comparison(result, ours, theirs, out)
        say(f"wrote {out}")


def _recordings(
    source: Path, first: int, count: int, read: Sequence[str] | None, overrides: Sequence[str] | None, trust: bool
) -> Sequence[Events]:
    """The events in a file, or some recordings of a config or a dataset from an index on."""
    from gerd.exchange.reading import is_event_file
    from gerd.recording.simulate import simulate_batch
    from gerd.storage.recordings import NOT_CHANGED, Recordings

    if is_event_file(source):
        events = events_in(source, read, first=first, set=overrides)
        return [] if events is None else [events]
    if not source.is_dir():
        config = load_config(source, overrides, trust)
        return simulate_batch(config.member(member_of(config, None)), range(first, first + count))
    if overrides:
        raise GerdError(f"{source}: {NOT_CHANGED}")
    data = Recordings(source)
    member = member_of(data.config, None)
    indices = range(first, min(first + count, data.manifest.count))
    if not indices:
        raise GerdError(f"--first {first}: {source} has the indices 0 to {data.manifest.count - 1}")
    return [data.at(index, member) for index in indices]
