"""What the adversary does with small inputs that stand for a great deal, and with the estimates of `gerd check`.

Configs of aliases, grids and pictures and the JSON of a dataset are read by a process with little memory; what a check
foretells of a hostile config is printed, within its own budget.
"""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import gerd
from gerd.cli.dry_run import dry_run
from gerd.cli.forecast import forecast
from gerd.config.digest import digest_of
from gerd.storage.json_files import json_bytes
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED
from support import bombs, hostile
from support.datasets import change_manifest, noticed

LONG = 5.0  # seconds that a recording takes by its forecast, which is then not made
MOST_COMPARED = 4000  # pictures of a recording that is made by the definition, too
GLANCE = 0.01  # seconds that go into such a forecast


def is_long(config: Any) -> bool:
    """Whether a check would say that a recording takes long, or much memory: who goes on has been warned."""
    foretold = forecast(config, GLANCE)
    return foretold.seconds > LONG or foretold.memory > 2**30


def is_long_by_definition(config: Any) -> bool:
    """Whether the definition, which takes a millisecond for each look at a picture, would take long, too."""
    return forecast(config, GLANCE).instants > MOST_COMPARED


def try_check(folder: Path, chance: random.Random) -> str:  # noqa: ARG001 - all inputs are tried alike
    """`gerd check` of a config at the ends of its ranges."""
    try:
        config = gerd.parse(hostile.text(chance))
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            dry_run(config, chance.choice([1, 100, 2**32]))
    except gerd.GerdError:
        return "refused"
    return "foretold"


def try_bomb(folder: Path, chance: random.Random) -> str:
    """Read a config whose few bytes stand for a great deal."""
    room = folder / "pictures"
    room.mkdir(exist_ok=True)
    made: Callable[[random.Random, Path], str] = chance.choice([_path, _grid, _pictures, _aliases, _nested])
    try:
        config = gerd.parse(made(chance, room), directory=room)
        _ = config.digest
    except gerd.GerdError:
        return "refused"
    return "read"


def _path(chance: random.Random, _room: Path) -> str:
    return bombs.repeated_path(chance.choice([1, 100, 3000]), chance.random() < 0.5)


def _grid(chance: random.Random, _room: Path) -> str:
    keep = chance.choice(["", "time_scale: {factor: 2, keep: path}\n", "time_scale: {factor: 1e-9, keep: path}\n"])
    path = chance.choice(["actors.0.rotation.velocity", "actors.0.scale.start", "time_scale", "integrator.threshold"])
    return keep + bombs.grid(chance.choice([2, 20, 100, 316, 1000]), path)


def _pictures(chance: random.Random, room: Path) -> str:
    """Some pictures, each of them many times."""
    names = []
    for number in range(chance.choice([1, 3])):
        names.append(f"{number}.jpg")
        (room / names[-1]).write_bytes(bombs.scans(chance.choice([16, 256, 2048]), chance.choice([0, 20, 30_000])))
    times = chance.choice([1, 30, 1000])
    masks = [{"mask": chance.choice(names), "invert": chance.random() < 0.5} for _ in range(times)]
    return json.dumps({"actors": [{"shape": {"choice": masks}}]})


def _aliases(chance: random.Random, _room: Path) -> str:
    """Lists of lists, each ten times as long as the one before."""
    depth, width = chance.choice([2, 4, 9]), chance.choice([10, 300])
    lines = ["a0: &a0 [1, 2]"]
    lines += [f"a{k + 1}: &a{k + 1} [{', '.join([f'*a{k}'] * width)}]" for k in range(depth)]
    where = chance.choice(["sweep: {noise.background: *a%d}", "actors: [{shape: {polygon: *a%d}}]", "actors: *a%d"])
    return "\n".join([*lines, where % depth])


def _nested(chance: random.Random, _room: Path) -> str:
    depth = chance.choice([10, 60, 70, 50_000])
    return f"actors: {chance.choice(['', '{a: '])}" + "[" * depth + "]" * depth


def try_json(folder: Path, sound: Path, chance: random.Random) -> str:
    """Look at a dataset one of whose JSON files is a bomb: `verify` notices."""
    copy = folder / "bombed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sound, copy)
    if chance.random() < 0.3:
        stored = {**json.loads((copy / RESOLVED).read_text()), **_forged(chance)}
        (copy / RESOLVED).write_bytes(json_bytes(stored))
        change_manifest(copy, config_digest=digest_of(stored))
    else:
        data = chance.choice([
            lambda: bombs.repeated_key(chance.choice([1, 1000, 200_000])),
            lambda: bombs.many_keys(chance.choice([1, 100_000, 240_000, 2_900_000])),
            lambda: bombs.empty_objects(chance.choice([10, 10_000, 500_000, 30_000_000])),
            lambda: bombs.manifest_of_numbers(chance.choice([1, 100_000, 2_900_000])),
            lambda: b"[" * chance.choice([1, 900, 10_000_000]),
            lambda: b'{"a": "' + b"x" * chance.choice([1, 50_000_000]) + b'"}',
            lambda: b"1" * chance.choice([1, 4000, 5000, 1_000_000]),
        ])()  # fmt: skip
        (copy / chance.choice([MANIFEST, MANIFEST, RESOLVED, CONFIG])).write_bytes(data)
    return "refused" if noticed(copy) else "wrong"


def _forged(chance: random.Random) -> dict[str, Any]:
    """Fields of a stored config that would take long to read."""
    values = [round(0.5 + 0.01 * number, 2) for number in range(chance.choice([100, 300]))]
    return chance.choice([
        {"time_scale": {"factor": 2, "keep": "path"},
         "sweep": {"noise.event": [v / 1000 for v in values], "integrator.threshold": values}},
        {"steps": 10**8, "time_scale": 5e-324},
        {"actors": [{"shape": {"svg": "M0 0 " + "L 1 0.5 " * 100_000}}] * 64},
        {"sweep": {f"actors.{number}": [1, 2] for number in range(17)}},
    ])  # fmt: skip
