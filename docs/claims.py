"""The claims of the documents: which command makes a figure again, how it is read, and how far off it may be.

A figure in a document is followed by a comment with the name of its claim, `1.7 × <!-- claim: finer -->`, and what it
says is read from the document; so nothing is written twice. `make_claims.py` runs the commands and compares. Claims are
ratios of one run, shares or sizes, so that a slow machine makes none of them false. Bounds say how far such a ratio
differs between machines and between runs on a busy one; what is not timed is the same everywhere, and has bounds for
the rounding only.

Numbers that nobody measured stand in `GIVEN`: what was chosen, defined, worked out or quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Read = Callable[[Any], float | list[float]]  # what a command has written to one number, or several


@dataclass(frozen=True)
class Claim:
    """How a figure is read from what its command has written, and its bounds."""

    read: Read
    factor: float = 1.0  # what is measured may be so many times as large as what is said, or as small
    apart: float = 0.0  # and beyond that differ by so much
    or_more: bool = False  # what is said is the least


@dataclass(frozen=True)
class Command:
    """What makes figures again. Its output is the JSON that it writes to {json}, or else its text."""

    line: str  # run in the repository's root
    claims: dict[str, Claim]
    long: bool = False  # minutes, or more packages


def grown(group: str, last: str, first: str) -> Read:
    return lambda found: found[group][last] / found[group][first]


def exact_over_step(speed: str) -> Read:
    return lambda found: found[speed]["exact"] / found[speed]["step"]


def densely(label: str) -> Read:
    return lambda found: [costs[f"{label}, dense"]["least"] / costs[label]["least"] for costs in found.values()]


def per_event(dataset: str) -> Read:
    return lambda found: found[dataset]["bytes_per_event"]


def of_crossings(upsampling: str, measure: str) -> Read:
    return lambda found: found["crossings"][upsampling][measure]


def at_events(measure: str) -> Read:
    return lambda found: [shares[measure] for shares in found["flow"].values()]


def after(pattern: str) -> Read:
    """The first number that a page prints where this is found."""
    return lambda text: float(re.findall(pattern, text, re.MULTILINE)[0])


def against_original(number: int) -> Read:
    return lambda found: found[number]["ratio"]


def against_loader(name: str) -> Read:
    return lambda found: found["recordings_per_s"][name] / found["recordings_per_s"]["gerd 0.5.1, GerdDataset"]


def first_seconds(rows: list[dict[str, Any]], backend: str) -> float:
    """The first recording of a new installation."""
    return next(row["first recording"] for row in rows if (row["backend"], row["cache"]) == (backend, "empty"))


def apart_at(emulator: str, rate: int) -> Read:
    """The median of |Δt| in µs, at a rate of pictures."""
    return lambda found: next(each["median_us"] for each in found[emulator] if each["frames_per_second"] == rate)


def kilobytes(case: str) -> Read:
    return lambda found: found[case]["bytes"] / 1000


GROWTH = Command(
    "python benchmarks/growth.py --json {json}",
    {
        "finer": Claim(grown("upsampling", "32", "2"), factor=1.3),
        "finest": Claim(grown("upsampling", "256", "8"), factor=1.3),
        "larger-frame": Claim(grown("resolution", "2048×2048", "128×128"), factor=1.25),
        "longer": Claim(grown("steps", "480", "60"), factor=1.25),
        "more-actors": Claim(grown("actors", "8", "1"), factor=1.3),
        "more-sides": Claim(grown("sides, per event", "4100", "10 (star)"), factor=1.3),
        "more-sides-exact": Claim(grown("sides, per event in exact timing", "4100", "10 (star)"), factor=1.3),
        "letter": Claim(grown("sides, per event", "455 (the letter &)", "10 (star)"), factor=1.3),
        "letter-exact": Claim(grown("sides, per event in exact timing", "455 (the letter &)", "10 (star)"), factor=1.3),
        "disks": Claim(grown("sides, per event", "4960 (disks)", "10 (star)"), factor=1.3),
        "disks-exact": Claim(grown("sides, per event in exact timing", "4960 (disks)", "10 (star)"), factor=1.3),
        "square-to-star": Claim(grown("sides, per event", "4 (square)", "10 (star)"), factor=1.3),
        "square-to-star-exact": Claim(grown("sides, per event in exact timing", "4 (square)", "10 (star)"), factor=1.3),
        "some-noise": Claim(grown("background", "0.001", "0"), factor=1.2),
        "much-noise": Claim(grown("background", "0.1", "0"), factor=1.3),
    },
)
TIMING = Command(
    "python benchmarks/timing.py --device cpu --json {json}",
    {f"exact-at-{speed}": Claim(exact_over_step(speed), factor=1.3) for speed in ("0.25", "0.5", "1", "2", "4")},
)
LABELS = Command(
    "python benchmarks/labels.py --dense --json {json}",
    {f"dense-{label}": Claim(densely(label), factor=1.4) for label in ("masks", "flow")},
)
READING = Command(
    "python benchmarks/reading.py --json {json}",
    {
        f"{claim}-{of}": Claim(lambda found, case=case, measure=measure: found[case][measure], factor=1.5)
        for of, case in (("three", "three shapes, 300×300"), ("bouncing", "configs/bouncing.yaml"))
        for claim, measure in (
            ("with-truth", "recording with its ground truth, time"),
            ("window", "window of 10 steps, time"),
            ("checksums", "its checksums alone, time"),
        )
    },
)
SMALL = Command(
    "python benchmarks/small.py --json {json}",
    {f"small-{n}": Claim(lambda found, n=n: found[str(n)]["ratio"], factor=1.2) for n in (1, 16, 64)},
)
TO_DISK = Command(
    "python benchmarks/to_disk.py --rounds 2 --json {json}",
    {
        "kernel-share": Claim(lambda found: 100 * found["steady_share_of_processor_time"], factor=1.15),
        "kernel-share-with-start": Claim(lambda found: 100 * found["share_of_processor_time"], factor=1.25),
        "worker-memory": Claim(lambda found: found["worker_memory_mb"], factor=1.25),
    },
)
SIZES = Command(
    "python benchmarks/sizes.py --json {json}",
    {
        "bytes-three": Claim(per_event("three shapes, 300×300"), apart=0.05),
        "bytes-bouncing": Claim(per_event("configs/bouncing.yaml"), apart=0.05),
        "bytes-readme": Claim(per_event("square.yaml of README.md"), apart=0.05),
        "bytes-tutorial": Claim(per_event("square.yaml of docs/tutorial.md"), apart=0.05),
        "parquet-size": Claim(lambda found: found["parquet"]["megabytes"], apart=0.05),
        "parquet-bytes": Claim(lambda found: found["parquet"]["bytes_per_event"], apart=0.05),
        "parquet-events": Claim(lambda found: found["parquet"]["events"]),
    },
)
EXACTNESS = Command(
    "python benchmarks/exactness.py --json {json}",
    {
        "same-events-8": Claim(of_crossings("8", "same_percent"), apart=0.05),
        "times-apart-8": Claim(of_crossings("8", "apart"), apart=0.0005),
        "same-events-32": Claim(of_crossings("32", "same_percent"), apart=0.005),
        "times-apart-32": Claim(of_crossings("32", "apart"), apart=0.00005),
        "flow-of-rest": Claim(at_events("rest_percent"), apart=0.5),
        "flow-unknown": Claim(at_events("unknown_percent"), apart=0.5),
    },
)
CONFORMANCE = Command(
    "python benchmarks/conformance.py lines evlib --json {json}",
    {
        "lines-at-1000": Claim(apart_at("lines", 1000), apart=0.5),
        "lines-at-4000": Claim(apart_at("lines", 4000), apart=0.5),
        "evlib-at-1000": Claim(apart_at("evlib", 1000), apart=0.5),
    },
    long=True,
)
TUTORIAL = Command(
    "python docs/run_page.py docs/tutorial.md",
    {
        "untrained": Claim(after(r"([\d.]+) pixels off before training"), factor=1.3),
        "trained": Claim(after(r"before training, ([\d.]+) after"), factor=1.3),
        "four-times-as-fast": Claim(
            lambda text: after(r"^ *4 × as fast: ([\d.]+)")(text) / after(r"^ *1 × as fast: ([\d.]+)")(text), factor=1.3
        ),
        **{f"at-speed-{s}": Claim(after(rf"^ *{s} × as fast: ([\d.]+)"), factor=1.3) for s in (0.25, 0.5, 1, 2, 4)},
    },
)
README = Command(
    "python docs/run_page.py README.md",
    {f"readme-at-{s}": Claim(after(rf"^{s} × as fast: ([\d.]+)"), factor=1.3) for s in (0.5, 1, 2)},
)
AGAINST_ORIGINAL = Command(
    "python benchmarks/against_original.py --repeats 1 --json {json}",
    {
        "against-three": Claim(against_original(0), factor=1.6),
        "against-all": Claim(against_original(1), factor=1.6),
        "against-one": Claim(against_original(2), factor=1.6),
    },
    long=True,
)
LOADING = Command(
    "python benchmarks/loading.py --json {json}",
    {
        "loads-bool": Claim(against_loader("Dataset, frames (bool)"), factor=1.2, or_more=True),
        "loads-float": Claim(against_loader("Dataset, frames as float32"), factor=1.2, or_more=True),
        "loads-stream": Claim(against_loader("Stream on the CPU"), factor=1.2, or_more=True),
        "loads-streams": Claim(against_loader("Stream on the CPU, 2 workers"), factor=1.2, or_more=True),
    },
    long=True,
)
EMULATORS = Command(
    "python benchmarks/emulators.py --json {json}",
    {"emulators": Claim(lambda found: [row["ratio"] for row in found if row["ratio"] != 1], factor=1.5)},
    long=True,
)
FIRST_CALL = Command(
    "python benchmarks/first_call.py --repeats 1 --json {json}",
    {"compiling": Claim(lambda found: first_seconds(found, "cpu, compiled") / first_seconds(found, "cpu"), factor=2)},
    long=True,
)
CLUSTER = Command(
    "python benchmarks/cluster.py --seconds 0.5 --shards 60 --json {json}",
    {
        "shard-small": Claim(kilobytes("64×64, 60 steps, one shape"), apart=0.05),
        "shard-middle": Claim(kilobytes("300×300, 128 steps, three shapes"), apart=0.5),
        "shard-large": Claim(kilobytes("1280×720, 128 steps, three shapes"), apart=0.5),
    },
    long=True,
)
COMMANDS = [GROWTH, TIMING, LABELS, READING, SMALL, TO_DISK, SIZES, EXACTNESS, TUTORIAL, README]
COMMANDS += [AGAINST_ORIGINAL, LOADING, EMULATORS, CONFORMANCE, FIRST_CALL, CLUSTER]

# Numbers that nobody measured, with enough of their sentence to know them by.
GIVEN = {
    "README.md": [
        "256 times the sub-pixels",  # 32² / 2²
        "256 times the pixels",
        "[Ten minutes to a trained network]",
    ],
    "CONTRIBUTING.md": ["eight times as many random examples"],  # in the profile `long` of hypothesis
    "docs/benchmarks.md": ["256 times the sub-pixels", "8 bytes for each event", "four times the recordings"],
    "docs/cameras.md": [  # values of the named cameras, each read in the code of the program that it is taken from
        "500 µs, hold",
        "100 µs, hold",
        "10 µs, drop",
    ],
    "docs/cluster.md": [
        "runs this script ten times",
        "busy for about two seconds",
        "after six times the command fails",
        "9 to 20 MB/s",  # worked out from the table above it, as the rest of the paragraph is
        "a disk of 0.93 GB/s: beyond that",
    ],
    "docs/commands.md": ["the 95 % quantile of"],
    "docs/config.md": ["0.9 shrinks by 10 %", "up to 4 MiB", "at most 10000000 times"],
    "docs/conventions.md": ["four times as fast", "four times as much of the path", "a frame for each 100 µs"],
    "docs/data.md": ["four times the memory", "at most 1 GB", "two times or more"],
    "docs/screen.md": [
        "11 times that of the background",  # (192 / 64) to the power 2.2
        "passed three times",
        *("within 5 %", "within 20 %", "within 10 %"),  # the bounds of tests/screen/test_fit.py
    ],
    "docs/formats.md": [
        "4.7 hours",  # 2³⁴ µs
        "71 minutes",  # 2³² µs
        "up to two minutes",
        "16.8 seconds",  # 2²⁴ µs
        "4096 µs",
        "29 kB",  # a word of 2 bytes every 4096 µs
        "35 minutes",  # 2³¹ µs
        "13 bytes",
        "4 bytes, a little-endian",
        "0.25 seconds behind",
        "1 byte where",
    ],
    "docs/gallery.md": [
        "5 % of each noise",
        "10 %, 5 % and 1 % in a step",
        "10 % of (a) background noise",
        "a pixel per frame of 5 ms",
    ],
    "docs/how.md": ["5 % of each noise"],
    "docs/index.md": ["[Ten minutes to a trained network]"],
    "docs/fine-tuning.md": ["at the end of 25 ms"],
    "docs/measures.md": [
        "a 95 % interval",
        "from a quarter to four times it",
        "25 % and 5 % of the events",
        "in more than 2.5 % of the cases",
        "exchanged among the recordings, 2000 times",
        "always 5\npx off",
        "with a probability of 2.5 %",
        "with a probability of 6 %",  # 2 / 2⁵
        "in 97.5 % of the resamples",
        "with a probability of less than\n2.5 %",
        "surely within 1 px",
        "falls by more than 1 px",
        "from 14 to 7 px",
        "surely more than 1 px below chance",
        "in about ten minutes on two cores",
        "that half (95 %)",
        "`--near-us` (5 ms)",
        "9 % of it, at 1 event",  # 1 − exp(−9 · 2 · 0.005): nine pixels, 5 ms before and after
        "the 1 % quantile of those at a pixel",
        "5 times the events of the median neighbour",
    ],
    "docs/original.md": ["the usual factor of 8"],
    "docs/studies/index.md": [
        "the 95 % interval of the difference",
        "in about 14 minutes on an H200 by an estimate",
        "in about ten minutes on two cores",
        "within 1 px of the transformed answer",
    ],
    "docs/trust.md": [
        "at most 256 MiB",
        "an SVG file 4 MiB",
        "up to 4 MiB of text",
        "5 seconds and 1 GiB",
        "more than 64 MiB and 8 KiB for each shard",
        "on Linux 4 GiB of memory",
        "more than 128 GiB",
        "at most 1000 bytes",
        "20 seconds of work at most",
    ],
    "docs/tutorial.md": ["# Ten minutes to a trained network", "four times the training speed"],
    "docs/view.md": ["up to 4 MiB"],
}
