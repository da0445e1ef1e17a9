"""Most commands of `gerd`, a function each: options in; printed lines, files and errors out.

What is slow to import is imported by the commands that need it, so that `gerd --help` answers at once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from gerd.cli.completing import DEVICES, ENGINES, FORMATS, KINDS, LIVE_FORMATS, one_of, sources
from gerd.cli.options import ConfigFile, Count, DatasetFolder, Index, Member, Overrides, Read, Source, Trust
from gerd.cli.sources import events_in, load_config, member_of, read_options, recordings_of
from gerd.cli.stopping import stoppable
from gerd.cli.terminal import say
from gerd.errors import GerdError, counted

if TYPE_CHECKING:
    from gerd.config.config import Config
    from gerd.recording.events import Events

SCHEMA = "gerd-schema.json"  # the name that the starter config has in its first line


def new(path: Annotated[Path, Argument(help="The file to write.")] = Path("gerd.yaml")) -> None:
    """Write a commented starter config, and beside it a JSON schema, with which editors complete and check fields."""
    import os
    from importlib.resources import files
    from shlex import quote

    from gerd.storage.whole import write_whole

    if os.path.lexists(path):
        raise GerdError(f"{path}: exists already; give another name")
    if not path.parent.is_dir():
        raise GerdError(f"{path}: cannot be written: there is no folder {path.parent}")
    starter = files("gerd.cli").joinpath("starter.yaml").read_text("utf-8")
    write_whole(path.with_name(SCHEMA), _schema().encode())  # before the config, so that an error leaves no config
    write_whole(path, starter.replace("gerd.yaml", quote(str(path))).encode())
    say(f"wrote {path}, and {path.with_name(SCHEMA)} for editors; next: gerd check {quote(str(path))}")


def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    say(_schema(), nl=False)


def _schema() -> str:
    import json

    from gerd.config.config import Config

    return json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def check(config: ConfigFile, count: Count = 1, set_: Overrides = None, trust: Trust = False) -> None:
    """Validate a config, and show its first scene and how many events, bytes, seconds and memory to expect."""
    from gerd.cli.dry_run import dry_run

    dry_run(load_config(config, set_, trust), count)


def generate(
    config: ConfigFile,
    out: Annotated[str, Argument(metavar="OUT", help="The folder or URL (s3://…) to write, or to continue.")],
    count: Count = 100,
    workers: Annotated[int | None, Option(min=1, help="Processes; default: as many as there are cores.")] = None,
    device: Annotated[
        str | None,
        Option(help="cpu, cuda, cuda:1 …; default: cpu, or a cluster's GPUs.", autocompletion=one_of(*DEVICES)),
    ] = None,
    engine: Annotated[
        str,
        Option(
            help="Where the work is done: local (this machine) or ray (a cluster).", autocompletion=one_of(*ENGINES)
        ),
    ] = "local",
    address: Annotated[
        str | None, Option(metavar="HOST:PORT", help="Address of the Ray cluster; default: this machine's.")
    ] = None,
    shard: Annotated[
        str, Option(metavar="I/N", help="Make only part I of N; N such commands, in any order, make the dataset.")
    ] = "1/1",
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Make a dataset. The same command continues an interrupted one; with a larger -n it adds recordings."""
    import time

    from gerd.cli.progress import Bar
    from gerd.cli.words import parse_part
    from gerd.config.sweep import member_count
    from gerd.storage.generate import generate as make
    from gerd.storage.generate import recordings_of_part

    part = parse_part(shard)
    chosen = load_config(config, set_, trust)
    total = recordings_of_part(count * member_count(chosen), part)
    begun = time.monotonic()
    with stoppable(out), Bar("recordings", total) as bar:
        data = make(
            chosen, out, count, workers=workers, device=device, engine=engine, address=address, part=part, progress=bar
        )
    seconds = time.monotonic() - begun
    rate = f", {bar.done} made or checked at {bar.done / seconds:.3g} recordings/s" if bar.done else ""
    size = f"{counted(len(data), 'recording')} in {counted(data.shard_count, 'shard')}"
    if not data.manifest.complete:
        size = f"part {shard}, {counted(total, 'recording')}; other parts are still to be made of {size}"
    say(f"{out}: {size} ({seconds:.1f} s{rate})")


def info(
    source: Annotated[
        str,
        Argument(
            metavar="DATASET|EVENTS", help="A dataset (a folder or a URL), or a file of events.", autocompletion=sources
        ),
    ],
    read: Read = None,
) -> None:
    """Print what a dataset or a file of events contains."""
    from gerd.cli.describe import describe, describe_events

    options = read_options(Path(source), read)
    if options is None:
        describe(source)
    else:
        describe_events(Path(source), options)


def verify(
    dataset: DatasetFolder,
    regenerate: Annotated[
        bool, Option("--regenerate", help="Also simulate every recording again and compare.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Compare a dataset with its digests; every fault is printed, and the exit code is 1 if there is one."""
    from gerd.cli.progress import Bar
    from gerd.storage.recordings import Recordings
    from gerd.storage.verify import verify as inspect

    sound = True
    data = Recordings(dataset)
    with Bar("recordings", len(data)) as bar:
        for looked_at, faults in inspect(dataset, regenerate=regenerate, trust=trust):
            bar(looked_at)
            for fault in faults:
                sound = False
                say(f"error: {fault}", err=True)
    if not sound:
        raise Exit(1)
    again = " and the same when made again" if regenerate else ""
    if data.recorded:
        again = "; their events were recorded and not simulated" + (
            ", and only their ground truth was made again: it is the same" if regenerate else ""
        )
    say(f"{dataset}: {counted(bar.done, 'recording')}, all sound{again}")


def render(
    source: Source,
    out: Annotated[
        Path, Argument(metavar="OUT", help="The file to write: .gif, .mp4, .png, .svg, .pdf, or .html for a page.")
    ],
    kind: Annotated[
        str | None,
        Option(
            help="video (default for .gif and .mp4); for .png, .svg and .pdf: sheet (default), frame, cloud, rate, "
            "curves (of T), parameters or stages (of the simulation).",
            autocompletion=one_of(*KINDS),
        ),
    ] = None,
    index: Index = 0,
    member: Member = None,
    family: Annotated[
        bool, Option("--family", help="Show all members of a sweep side by side, as a video, sheet, clouds or page.")
    ] = False,
    start: Annotated[int, Option(help="The first step to show; -10 is the tenth from the end.")] = 0,
    stop: Annotated[int | None, Option(help="The step before which to stop.")] = None,
    step: Annotated[int | None, Option(help="For a frame: which step.")] = None,
    count: Annotated[int | None, Option(help="For a sheet: the number of frames; for stages: of steps.")] = None,
    window: Annotated[
        float | None, Option(help="For a sheet: how many steps are shown together; below 1, their share of all steps.")
    ] = None,
    overlay: Annotated[bool, Option("--overlay", help="Also draw outlines, paths of the centres and boxes.")] = False,
    side_by_side: Annotated[
        bool, Option("--side-by-side", help="Also show the brightness, beside the events.")
    ] = False,
    zoom: Annotated[int | None, Option(min=1, max=32, help="For a video: screen pixels per pixel.")] = None,
    fps: Annotated[float | None, Option(min=0.1, help="For a video: frames per second; in a GIF at most 50.")] = None,
    read: Read = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Draw a recording of a config or a dataset, or a file of events, as a video, a picture or a page."""
    from gerd.cli.progress import Bar
    from gerd.page.render import check as check_wishes
    from gerd.page.render import render as write

    wishes = {"step": step, "count": count, "overlay": overlay or None, "side_by_side": side_by_side or None}
    options: dict[str, Any] = {
        name: wish for name, wish in {**wishes, "window": window, "zoom": zoom, "fps": fps}.items() if wish is not None
    }
    check_wishes(out, kind, options, family=family)
    if family and member:
        raise GerdError(f"--member {member[0]}: --family shows all members; allowed: one of the two")
    events = events_in(source, read, index=index, member=member, family=family, set=set_)
    if events is not None:
        with Bar("steps", events.window(start, stop).steps) as bar:
            write(events, out, kind, start=start, stop=stop, progress=bar, **options)
        say(f"wrote {out}: {events!r}")
        return
    recordings = recordings_of(source, index, member, family, set_, trust)
    with Bar("steps", max(recording.window(start, stop).steps for recording in recordings)) as bar:
        write(recordings if family else recordings[0], out, kind, start=start, stop=stop, progress=bar, **options)
    what = f"{recordings[0].config.name}, index {index}, all {counted(len(recordings), 'member')}"
    say(f"wrote {out}: {what if family else repr(recordings[0])}")


def export(
    source: Annotated[
        str,
        Argument(
            metavar="CONFIG|DATASET|EVENTS",
            help="A config, a dataset (a folder or a URL), or a file of events.",
            autocompletion=sources,
        ),
    ],
    out: Annotated[
        Path, Argument(metavar="OUT", help="The folder to write or to continue; for EVENTS: the file to write.")
    ],
    format_: Annotated[
        str | None,
        Option(
            "--format",
            help="evt2, aedat4, evt3, dat, es, hdf5-dsec, hdf5, rpg, csv, npz; parquet: for Hugging Face and pandas; "
            "frames, voltmeter: the video, for emulators. Default: evt2; for EVENTS, by the end of the name of OUT.",
            autocompletion=one_of(*FORMATS),
        ),
    ] = None,
    levels: Annotated[
        tuple[int, int], Option(help="For a video: the grey values of the background and of brightness 1.")
    ] = (0, 255),
    causes: Annotated[
        bool,
        Option(
            "--causes",
            help="For csv, npz, hdf5, parquet: add the cause, source and time before readout of each event.",
        ),
    ] = False,
    index: Annotated[
        str | None,
        Option(
            metavar="I,J:K", help="Which indices: 3, or 1,4,7, or 10:20; default: all of a dataset, or 0 of a config."
        ),
    ] = None,
    member: Annotated[
        list[str] | None,
        Option("--member", metavar="K|PATH=VALUE", help="Which member of a sweep; default: all. Repeatable."),
    ] = None,
    read: Read = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Write recordings in the formats of other tools: a file for each, with its ground truth beside it.

    The recordings come from a dataset, or directly from a config. Parquet has one file for each shard, which contains
    the ground truth, too. A file of events becomes one file of another format.
    """
    from gerd.cli.progress import Bar
    from gerd.cli.words import parse_indices, parse_member
    from gerd.exchange.chosen import choose
    from gerd.exchange.export import export_dataset
    from gerd.exchange.formats import format_of, write_events
    from gerd.storage.recordings import NOT_CHANGED

    events = events_in(Path(source), read, index=index, member=member, set=set_, causes=causes)
    if events is not None:
        kind = format_ or format_of(out)
        write_events(out, events, format=kind)
        say(f"wrote {out}: {counted(len(events), 'event')} as {kind}")
        return
    kind = format_ or "evt2"
    is_config = Path(source).is_file() or source.endswith((".yaml", ".yml"))
    if not is_config and set_:
        raise GerdError(f"{source}: {NOT_CHANGED}")
    chosen = load_config(Path(source), set_, trust) if is_config else source
    indices = None if index is None else parse_indices(index)
    which = parse_member(member or ())
    with stoppable(out), Bar("recordings", len(choose(chosen, indices, which))) as bar:
        count = export_dataset(
            chosen, out, kind, indices=indices, member=which, levels=levels, causes=causes, progress=bar
        )
    say(f"{out}: {counted(count, 'recording')} as {kind}, with ground truth")


def play(
    source: Source,
    to: Annotated[str, Option(help="Where to send: - for standard output, udp://HOST:PORT, a file or a pipe.")] = "-",
    format_: Annotated[
        str | None,
        Option(
            "--format",
            help="csv, binary or aestream; default: csv, and aestream over UDP.",
            autocompletion=one_of(*LIVE_FORMATS),
        ),
    ] = None,
    index: Index = 0,
    member: Member = None,
    speed: Annotated[float, Option(help="2 is twice as fast as real time; inf does not wait.")] = 1.0,
    loop: Annotated[bool, Option("--loop", help="Start again at the end.")] = False,
    endless: Annotated[bool, Option("--endless", help="Continue to simulate a config after its last step.")] = False,
    truth: Annotated[str | None, Option(help="Where to write the ground truth, as lines of JSON: a file or -.")] = None,
    read: Read = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Send the events of a recording, or of a file, in real time. Press Ctrl-C to stop."""
    from gerd.exchange.live import send

    tell = partial(say, err=True)
    chosen: Events | Config | None = events_in(source, read, index=index, member=member, set=set_)
    if chosen is None and source.is_dir():
        (chosen,) = recordings_of(source, index, member, False, set_, trust)
    elif chosen is None:
        family = load_config(source, set_, trust)
        chosen = family.member(member_of(family, member))
    sent = send(
        chosen, to, format=format_, index=index, speed=speed, loop=loop, endless=endless, truth_to=truth, report=tell
    )
    tell(str(sent))


def stimulus(
    config: ConfigFile,
    out: Annotated[Path, Argument(metavar="OUT.mp4", help="The video to write; OUT.json is written beside it.")],
    screen: Annotated[str, Option(metavar="WxH", help="Size in pixels of the screen that will show the video.")] = (
        "1920x1080"
    ),
    fps: Annotated[str, Option(help="Refresh rate of that screen: 120, 59.94, 60000/1001; each step is a frame.")] = (
        "60"
    ),
    count: Annotated[int, Option("-n", "--count", min=1, help="Indices, each with all members of a sweep.")] = 1,
    zoom: Annotated[
        int | None, Option(min=1, help="Screen pixels per pixel of the scene; default: the most that fit.")
    ] = None,
    levels: Annotated[tuple[int, int], Option(help="Grey values of the background and of brightness 1.")] = (64, 192),
    gamma: Annotated[float, Option(help="Gamma of the screen; 1 if its light is proportional to grey values.")] = 2.2,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Write a video of recordings, to show to an event camera on a screen; gerd register reads what the camera saw."""
    from gerd.cli.progress import Bar
    from gerd.cli.words import in_seconds, parse_size
    from gerd.screen.stimulus import plan_stimulus
    from gerd.screen.write import sidecar, write_stimulus

    asked = (load_config(config, set_, trust), parse_size("--screen", screen), fps, count)
    planned = plan_stimulus(*asked, zoom=zoom, levels=levels, gamma=gamma)
    with Bar("frames", planned.frames) as bar:
        write_stimulus(asked[0], out, *asked[1:], zoom=zoom, levels=levels, gamma=gamma, progress=bar)
    size = f"{planned.frames} frames, {in_seconds(planned.seconds(planned.frames))}"
    shown = f"{counted(len(planned.scenes), 'recording')}, {planned.zoom} screen pixels to a pixel of the scene"
    if not planned.marks:
        shown += "; no room for marks beside it, so that a frame that a player drops is not noticed"
    say(f"wrote {out} and {sidecar(out)}: {size}; {shown}")


def view(
    source: Source,
    port: Annotated[
        int | None, Option(min=0, max=65535, help="Port to listen on; default: the first free one from 8350 on.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen at; 127.0.0.1 is for this machine only.")] = "127.0.0.1",
    browser: Annotated[bool, Option(help="Open a browser, if there is one.")] = True,
    read: Read = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Explore a config, a dataset or a file of events on a page in your browser. Press Ctrl-C to stop."""
    from gerd.page.server import serve

    events = events_in(source, read, set=set_)
    serve(source, events, host=host, port=port, overrides=set_ or (), trust=trust, browser=browser, say=say)


def cache(clear: Annotated[bool, Option("--clear", help="Remove the compiled kernels.")] = False) -> None:
    """Print where compiled kernels are kept, and how many; kernels that are removed are compiled again when needed.

    This does not include the kernels of a GPU, which Triton keeps in its own cache.
    """
    from gerd.cli.kept import tell_of_cache

    tell_of_cache(clear)
