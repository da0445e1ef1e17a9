"""Everything that an adversary, a bad disk or a power cut can do, at random and many times; counts of what came of it.

    python tests/support/adversary.py --inputs 100000 --interruptions 500 --seed 0 --jobs 2

An input is a damaged copy of a dataset or of a file of events, a hostile config, a dataset with a special file in it,
or a request to the page. An interruption is a kill, or an error of a write, a flush or a rename, while a dataset or an
export is made. Of what can be on the same machine (`adversary_machine.py`) there are clients that do not read, and
users who write to the cache of kernels. What must never be: a crash, a hang, an error that is not a `GerdError`, a
wrong recording, a dataset that does not end with the bytes of an undisturbed run. Inputs are tried in forked processes
(`forked.py`), so that a crash ends one of them and is counted.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch

import gerd
from gerd.cli.describe import describe
from gerd.exchange.export import export_dataset
from gerd.page.answers import Editor
from gerd.page.server import running
from gerd.storage.manifest import MANIFEST, RESOLVED, shard_name
from gerd.storage.whole import is_temporary
from support import event_files, hostile, tricks
from support.adversary_machine import forged_caches, slow_readers
from support.damage import NONSENSE, damaged
from support.datasets import TWO_SHAPES, content, noticed
from support.forked import FAULTS, PATIENCE, Outcome, in_processes

COUNT = 70  # × 2 recordings: three shards
OF_ONE_MACHINE = 60  # inputs for each slow reader and each forged cache
MOST_OF_ONE_MACHINE = 20  # of each, because a forged cache takes half a minute: kernels are compiled
OF_ROUND = 2500  # inputs, after which there are counts
CALLS = 24  # that bring files to the disk, while a dataset is made


class Lab:
    """A sound dataset, what is in it, and room to spoil copies of it."""

    def __init__(self, folder: Path):
        self.folder, self.sound = folder, folder / "sound"
        self.config = gerd.parse(TWO_SHAPES)
        gerd.generate(self.config, self.sound, COUNT, workers=1)
        self.files = content(self.sound)
        self.recordings = [everything(recording) for recording in gerd.Recordings(self.sound)]
        for timing in ("step", "exact"):  # all kernels are compiled now, and not while an input may be taken for a hang
            _ = gerd.simulate(self.config, member=0, timing=timing).actor

    def copy(self) -> Path:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        return Path(shutil.copytree(self.sound, copy))


def everything(recording: gerd.Recording) -> tuple[Any, ...]:
    arrays = (recording.keys, recording.background, recording.truth)
    return (recording.identity, recording.steps, *(array.tobytes() for array in arrays))


# Inputs


def try_damage(lab: Lab, chance: random.Random) -> Outcome:
    """Read a dataset of which one file is damaged: what can be read is as it was, and `verify` notices."""
    name = chance.choice([shard_name(0), shard_name(0), shard_name(2), MANIFEST, RESOLVED])
    data = damaged(chance, lab.files[name])
    if same(data, lab.files[name]):
        return "nothing changed"
    copy = lab.copy()
    (copy / name).write_bytes(data)
    refused = False
    try:
        recordings = gerd.Recordings(copy)
        for position in (0, 63, 130, chance.randrange(len(lab.recordings))):
            refused |= not readable(recordings, position, lab.recordings[position], chance)
    except gerd.GerdError:
        refused = True
    if chance.random() < 0.1:
        chance.choice([look_through, info, export])(copy)
    if not refused and not noticed(copy):
        return "wrong"
    return "refused" if refused else "noticed by verify"


def same(data: bytes, before: bytes) -> bool:
    """Whether two files say the same; spaces in JSON do not count."""
    with suppress(ValueError):
        return data == before or (before.startswith(b"{") and bool(json.loads(data) == json.loads(before)))
    return False


def readable(data: gerd.Recordings, position: int, wanted: tuple[Any, ...], chance: random.Random) -> bool:
    """Whether a recording can be read; AssertionError if it is another."""
    try:
        if len(data) != len(range(COUNT * 2)):
            return False
        recording = data[position]
        start = chance.randrange(recording.steps)
        window = data.window(position, start, start + 1)
        truth = data.truth(position)
        assert np.array_equal(window.keys, recording.window(start, start + 1).keys), "a window is wrong"
        assert np.array_equal(truth, recording.truth), "the truth is wrong"
    except gerd.GerdError:
        return False
    assert everything(recording) == wanted, "a recording is wrong"
    return True


def look_through(folder: Path) -> None:
    with suppress(gerd.GerdError):
        data = gerd.Dataset(folder, steps=2, label="flow")
        _ = data[0], data[len(data) - 1]


def info(folder: Path) -> None:
    with suppress(gerd.GerdError), redirect_stdout(io.StringIO()):
        describe(folder)


def export(folder: Path) -> None:
    with suppress(gerd.GerdError):
        export_dataset(folder, folder / "out", "csv")


def try_config(lab: Lab, chance: random.Random) -> Outcome:  # noqa: ARG001 - all inputs are tried alike
    """Simulate a config at the ends of its ranges; now and then by the definition, too."""
    text = hostile.text(chance)
    try:
        config = gerd.parse(text, overrides=["sweep={}"])
        if tricks.is_long(config):
            return "too long, and foretold"
        recording = gerd.simulate(config)
    except gerd.GerdError:
        return "refused"
    there = np.isfinite(recording.truth).all(axis=(0, 2, 3))
    assert np.array_equal(there, recording.present), "the truth is no number"
    if chance.random() < 0.05 and not tricks.is_long_by_definition(config):
        assert gerd.simulate(config, backend="torch").digest == recording.digest, "the backends differ"
    return "simulated"


def try_special(lab: Lab, chance: random.Random) -> Outcome:
    """Use a dataset in which something else has the name of a file."""
    copy = lab.copy()
    file = copy / chance.choice(list(lab.files))
    kinds: list[Callable[[Path], Any]] = [
        os.mkfifo,
        lambda path: path.symlink_to(chance.choice(["/dev/zero", "/dev/full", "/proc/self/mem", path.name])),
        Path.mkdir,
        Path.touch,
        lambda path: (path.touch(), os.truncate(path, 2**40)),
    ]
    file.unlink()
    chance.choice(kinds)(file)
    chance.choice([noticed, look_through, info, export])(copy)
    return "refused" if noticed(copy) else "wrong"


def try_check(lab: Lab, chance: random.Random) -> Outcome:
    return tricks.try_check(lab.folder, chance)


def try_bomb(lab: Lab, chance: random.Random) -> Outcome:
    return tricks.try_bomb(lab.folder, chance)


def try_json(lab: Lab, chance: random.Random) -> Outcome:
    return tricks.try_json(lab.folder, lab.sound, chance)


def try_events(lab: Lab, chance: random.Random) -> Outcome:
    return event_files.try_file(lab.folder, chance)


# Requests


def requests(folder: Path, number: int, seed: int) -> Counter:
    """Ask the page nonsense; at the end it still answers a good question."""
    file, chance, outcomes = folder / "config.yaml", random.Random(seed), Counter[Outcome]()
    file.write_text(TWO_SHAPES)
    good = json.dumps({"text": TWO_SHAPES, "overrides": [], "index": 0, "member": 0})
    with running(Editor.of(file)) as address:
        place, _, token = address.partition("?token=")
        port = int(place.rstrip("/").rpartition(":")[2])
        for _ in range(number):
            text = chance.choice([hostile.text, lambda _: TWO_SHAPES, lambda _: "a: ["])(chance)
            question = {"text": text, "overrides": [], "index": 0, "member": 0}
            question[chance.choice(list(question))] = chance.choice([*NONSENSE, text, ["steps=3"], ["x=["]])
            body = json.dumps(question).encode()
            outcomes[asked(port, token, chance, damaged(chance, body) if chance.random() < 0.3 else body)] += 1
        good_answer = asked(port, token, None, good.encode())
        outcomes["a request without an answer" if good_answer != "answered with 200" else "answered at the end"] += 1
    return outcomes


def asked(port: int, token: str, chance: random.Random | None, body: bytes) -> Outcome:
    """One question; without the token there must be no answer to it."""
    method, path, knows = "POST", "/api/recording", chance is None or chance.random() < 0.9
    if chance is not None and chance.random() < 0.2:
        method, path = (
            chance.choice(["GET", "PUT", "POST"]),
            chance.choice(["/", "/api/start", "/page/../x", "/%00", "/x"]),
        )
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        known = {"Authorization": f"Bearer {token if knows else token[::-1]}"}
        connection.request(method, path, body, {"Host": "localhost", **known})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return "a request without an answer"
    finally:
        connection.close()
    if not knows and path.startswith("/api/") and status not in (401, 405):
        return "wrong"
    return f"answered with {status}" if status < 500 else "not a GerdError"


# Interruptions


def interruptions(lab: Lab, number: int, seed: int) -> Counter:
    """Interrupt the making of datasets and exports, a few times each; then let them end, and compare all bytes."""
    export_dataset(lab.sound, lab.folder / "exported", "csv")
    makers: list[tuple[Callable[[Path], Any], dict[str, bytes]]] = [
        (lambda out: gerd.generate(lab.config, out, COUNT, workers=1), lab.files),
        (partial(in_parts, lab.config), lab.files),
        (lambda out: export_dataset(lab.sound, out, "csv"), content(lab.folder / "exported")),
    ]
    chance, outcomes = random.Random(seed), Counter[Outcome]()
    while sum(outcomes[kind] for kind in ("killed", "failed", "died at a call")) < number:
        make, wanted = chance.choice(makers)
        out = lab.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        for _ in range(chance.randrange(1, 5)):
            outcomes[interrupted(partial(make, out), chance)] += 1
        with redirect_stderr(io.StringIO()):
            make(out)
        left = {name: data for name, data in content(out).items() if not is_temporary(name)}  # parts leave such files
        if left != wanted:
            print("lost:", {name for name in {**left, **wanted} if left.get(name) != wanted.get(name)}, file=sys.stderr)
        outcomes["ended as undisturbed" if left == wanted else "lost"] += 1
    return outcomes


def in_parts(config: Any, out: Path) -> None:
    for part in ((2, 3), (1, 3), (3, 3)):
        gerd.generate(config, out, COUNT, workers=1, part=part)


def interrupted(make: Callable[[], Any], chance: random.Random) -> Outcome:
    """Do something in a forked process that is killed at some time, or whose system calls fail at some point."""
    how, at = chance.choice(["killed", "failed", "died at a call"]), chance.randrange(CALLS)
    child = os.fork()
    if child == 0:
        code = 2
        with suppress(BaseException), redirect_stderr(io.StringIO()), failing(how, at):
            try:
                make()
                code = 0
            except gerd.GerdError:
                code = 1
        os._exit(code)
    if how == "killed":
        time.sleep(chance.random() * 0.3)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 2:
        return "not a GerdError"
    return "not reached" if status == 0 else how


@contextmanager
def failing(how: str, at: int) -> Iterator[None]:
    """While call number `at` of those that bring files to the disk fails, or ends the process before it is done."""
    real, made = {name: getattr(os, name) for name in ("fsync", "replace", "open")}, 0

    def call(name: str, *arguments: Any, **options: Any) -> Any:
        nonlocal made
        made += name != "open" or bool(arguments[1] & (os.O_WRONLY | os.O_RDWR))
        if made == at + 1:
            if how == "died at a call":
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            raise OSError(28, os.strerror(28))
        return real[name](*arguments, **options)

    if how != "killed":
        for name in real:
            setattr(os, name, partial(call, name))
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)


Tables = dict[str, Counter]  # outcomes by what was tried


def trial(inputs: int, interrupted: int, of_machine: int, seed: int) -> Tables:
    """A round: all kinds of inputs, `inputs` in all, interruptions, and so many of each trick of the same machine."""
    torch.set_num_threads(1)
    shares = (
        ("damaged copies", try_damage, 0.43),
        ("damaged files of events", try_events, 0.15),
        ("hostile configs", try_config, 0.24),
        ("checks", try_check, 0.03),
        ("configs that stand for much", try_bomb, 0.03),
        ("JSON bombs", try_json, 0.02),
        ("special files", try_special, 0.06),
    )
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        tables = {"interruptions": interruptions(lab, interrupted, seed)}
        for name, attempt, share in shares:
            tables[name] = in_processes(name, partial(attempt, lab), round(share * inputs), seed)
        tables["requests"] = requests(Path(folder), inputs - sum(round(s * inputs) for *_, s in shares), seed)
        tables["slow readers"] = slow_readers(Path(folder), of_machine, seed)
        tables["forged caches"] = forged_caches(Path(folder), of_machine, seed)
    return tables


def rounds(inputs: int, interrupted: int, seed: int) -> list[tuple[int, int, int, int]]:
    """The arguments of `trial` in each round, which share the work evenly."""
    number = max(1, -(-inputs // OF_ROUND))
    totals = (inputs, interrupted, min(inputs // OF_ONE_MACHINE, MOST_OF_ONE_MACHINE))
    shares = [[total * (i + 1) // number - total * i // number for i in range(number)] for total in totals]
    return list(zip(*shares, range(seed, seed + number), strict=True))


def in_words(tables: Tables) -> str:
    return "\n".join(
        f"{name}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(outcomes.items()))}"
        for name, outcomes in tables.items()
    )


def faults(tables: Tables) -> dict[Outcome, int]:
    total = sum(tables.values(), Counter[Outcome]())
    return {fault: total[fault] for fault in FAULTS if total[fault]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--inputs", type=int, default=100_000)
    options.add_argument("--interruptions", type=int, default=500)
    options.add_argument("--seed", type=int, default=0, help="of the first round; the next has the next seed")
    options.add_argument(
        "--jobs", type=int, default=1, help="rounds at the same time; they do not show in the outcomes"
    )
    chosen = options.parse_args()
    work = rounds(chosen.inputs, chosen.interruptions, chosen.seed)
    total: Tables = {}
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        for done, future in enumerate(as_completed([pool.submit(trial, *of_round) for of_round in work]), 1):
            for name, outcomes in future.result().items():
                total[name] = total.get(name, Counter()) + outcomes
            if done < len(work):
                print(
                    f"{done} of {len(work)} rounds\n{in_words(total)}\nfaults: {faults(total) or 'none'}\n",
                    file=sys.stderr,
                )
    print(in_words(total))
    print(f"faults: {faults(total) or 'none'}")
    sys.exit(1 if faults(total) else 0)


if __name__ == "__main__":
    main()
