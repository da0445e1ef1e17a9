"""The command line: `gerd new`, `schema`, `check`, `generate`, `info`, `verify`, `render`.

What is slow to import is imported by the commands that need it, so that `gerd --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gerd.errors import GerdError

if TYPE_CHECKING:
    from gerd.config import Config
    from gerd.recording import Recording

app = typer.Typer(
    help="Event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A config file (YAML).")]
DatasetFolder = Annotated[Path, typer.Argument(metavar="DATASET", help="A folder that gerd generate has written.")]
Count = Annotated[
    int, typer.Option("-n", "--count", min=1, max=2**32, help="Recordings, each with all members of the sweep.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a field; may be given several times.")
]
Trust = Annotated[bool, typer.Option("--trust", help="Let the config run the Python functions that it names.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1 …; the result is the same.")]

STARTER = """\
# A config for gerd. Every field but `actors` has a default; docs/config.md lists them all.
# Look at it with:  gerd check {name}    gerd render {name} out.gif
# Make data with:   gerd generate {name} data/ -n 100

seed: 7                                 # the same seed gives the same bits, on any machine
sensor: {{width: 128, height: 96}}        # pixels
steps: 60                               # length of a recording
upsampling: 8                           # sub-pixels per pixel, along each axis

noise:                                  # probabilities
  background: 0.001                     # a pixel fires regardless, per pixel and step
  shape: 0                              # a covered pixel is missing in one frame
  event: 0                              # an event is dropped

actors:                                 # from the farthest to the nearest
  - shape: square                       # or circle, triangle, {{polygon: …}}, {{svg: …}}, {{mask: …}}, {{text: …}}
    translation:                        # pixels, x to the right and y down
      start: uniform                    # any place where the shape lies inside the frame
      velocity: {{uniform: [-1, 1]}}      # pixels per step, drawn once for each axis
      acceleration: {{normal: [0, 0.02]}} # drawn anew each step: Brownian motion; 0 for constant velocity
      border: bounce                    # or wrap, free
    scale: {{start: {{uniform: [15, 40]}}, velocity: 0, acceleration: 0}}     # pixels
    rotation: {{start: uniform, velocity: {{uniform: [-3, 3]}}, acceleration: 0}} # degrees, clockwise

# sweep:                                # each recording once for every value, all else equal, noise included
#   time_scale: [0.5, 1, 2]
"""


def _version(wanted: bool) -> None:
    if wanted:
        from gerd.version import __version__

        typer.echo(f"gerd {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What `gerd` takes before the name of a command; its help is that of the app."""


@app.command()
def new(path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("gerd.yaml")) -> None:
    """Write a commented starter config."""
    from shlex import quote

    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(STARTER.format(name=quote(str(path))))
    except FileExistsError:
        raise GerdError(f"{path}: exists already; give another name") from None
    except OSError as error:
        raise GerdError(f"{path}: cannot be written: {error.strerror}") from None
    typer.echo(f"wrote {path}; next: gerd check {quote(str(path))}")


@app.command()
def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    import json

    from gerd.config import Config

    typer.echo(json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False))


@app.command()
def check(config: ConfigFile, count: Count = 1, set_: Overrides = None, trust: Trust = False) -> None:
    """Validate a config and show what it would make: the first scene, the number of recordings, the size."""
    from gerd.report import dry_run

    dry_run(_load(config, set_, trust), count)


@app.command()
def generate(
    config: ConfigFile,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; continued if it was begun.")],
    count: Count = 100,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; as many as cores unless told.")] = None,
    device: Device = "cpu",
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Make a dataset. Run the same command again to continue one that was interrupted."""
    import time

    from gerd.generation import generate as make
    from gerd.sweep import member_count

    chosen = _load(config, set_, trust)
    total = count * member_count(chosen)
    begun = time.monotonic()
    try:
        with _Progress("recordings", total) as advance:
            data = make(chosen, out, count, workers=workers, device=device, progress=advance)
    except MemoryError:
        typer.echo("error: not enough memory for recordings of this length and size", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        raise _StoppedError(f"stopped; {out} keeps what is finished, and the same command continues") from None
    seconds = time.monotonic() - begun
    rate = f", {advance.done} made or checked at {advance.done / seconds:.3g} recordings/s" if advance.done else ""
    size = f"{_counted(len(data), 'recording')} in {_counted(data.shard_count, 'shard')}"
    typer.echo(f"{out}: {size} ({seconds:.1f} s{rate})")


@app.command()
def info(dataset: DatasetFolder) -> None:
    """Print what a dataset holds."""
    from gerd.report import describe

    describe(dataset)


@app.command()
def verify(
    dataset: DatasetFolder,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Also make every recording again and compare.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Check a dataset against its digests; every fault is printed, and the exit code is 1 if there is one."""
    from gerd.storage import Recordings
    from gerd.storage import verify as inspect

    faults = 0
    with _Progress("recordings", len(Recordings(dataset))) as advance:
        for looked_at, found in inspect(dataset, regenerate=regenerate, trust=trust):
            advance(looked_at)
            for fault in found:
                faults += 1
                typer.echo(f"error: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    again = " and the same when made again" if regenerate else ""
    typer.echo(f"{dataset}: {_counted(advance.done, 'recording')}, all sound{again}")


@app.command()
def render(
    source: Annotated[Path, typer.Argument(metavar="CONFIG|DATASET", help="What to show: a config file or a dataset.")],
    out: Annotated[Path, typer.Argument(metavar="OUT.gif", help="The file to write.")],
    index: Annotated[int, typer.Option(min=0, help="Which recording; of a dataset, which of all its members.")] = 0,
    zoom: Annotated[int | None, typer.Option(min=1, max=32, help="Screen pixels per sensor pixel.")] = None,
    fps: Annotated[float, typer.Option(min=0.1, help="Frames per second; a GIF shows at most 50.")] = 20.0,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Show a recording of a config, or one of a dataset, as a moving picture."""
    from gerd.picture import gif

    if out.suffix.lower() != ".gif":
        raise GerdError(f"{out}: the file to write must end in .gif")
    recording = _recording(source, index, set_, trust)
    gif(recording, out, zoom=zoom, frames_per_second=fps)
    typer.echo(f"wrote {out}: {recording!r}")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _load(path: Path, overrides: list[str] | None, trust: bool) -> Config:
    from gerd.loading import load

    return load(path, overrides=overrides or (), trust=trust)


def _recording(source: Path, index: int, overrides: list[str] | None, trust: bool) -> Recording:
    if source.is_dir():
        from gerd.storage import Recordings

        if overrides:
            raise GerdError(f"{source}: is a dataset, whose fields cannot be changed; --set goes with a config")
        try:
            return Recordings(source)[index]
        except IndexError as error:
            raise GerdError(str(error)) from None
    from gerd.simulation import simulate

    return simulate(_load(source, overrides, trust), index)


class _Progress:
    """A progress bar with rate and time left, on the terminal only; counts what it is called with."""

    def __init__(self, what: str, total: int):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = ("{task.fields[rate]}", TimeRemainingColumn(compact=True), TextColumn("left"))
        self._bar = Progress(
            TextColumn(what), BarColumn(), MofNCompleteColumn(), *columns, console=Console(stderr=True)
        )
        self._task = self._bar.add_task(what, total=total, rate="")
        self.done = 0

    def __enter__(self) -> _Progress:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __call__(self, made: int) -> None:
        self.done += made
        elapsed = self._bar.tasks[0].elapsed
        rate = f"{self.done / elapsed:.3g}/s" if elapsed else ""
        self._bar.update(self._task, advance=made, rate=rate)

    def __exit__(self, *error: Any) -> None:
        if self._bar.console.is_terminal:
            self._bar.stop()


class _StoppedError(GerdError):
    """The user pressed Ctrl-C."""

    exit_code = 130


def main() -> None:
    """Run the command line; a user's mistake is a message and an exit code, not a traceback."""
    try:
        app()
    except GerdError as error:
        for line in str(error).splitlines():
            typer.echo(f"error: {line}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read the output has seen enough
        sys.exit(0)
