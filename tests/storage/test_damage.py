"""Damaged files and damaged configs: always a `GerdError`, or what was meant; never a crash, a hang or much memory.

Each example runs with little memory to spare. Mutations are drawn by Hypothesis: shards and manifests by the byte and
by the field, configs by the character, the line and the value.
"""

from __future__ import annotations

import io
import json
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from support.datasets import noticed

import gerd
from gerd.cli.dry_run import dry_run
from gerd.recording.recording import Recording
from gerd.storage.manifest import MANIFEST, RESOLVED, shard_name
from gerd.storage.places import Folder
from gerd.storage.shard import Shard

ROOT = Path(__file__).parents[2]
STARTER = (ROOT / "gerd" / "cli" / "starter.yaml").read_text("utf-8")
SPARE = 512 * 2**20  # bytes of memory that an example may take beyond what the process has
PATIENCE = 120  # seconds after which an example counts as hanging


def few_and_many(few: int, many: int = 5000) -> pytest.MarkDecorator:
    """A test with few examples, and a long one with many."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.long)])


class HangError(BaseException):
    """No part of the program may catch this."""


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    gerd.simulate(gerd.parse(STARTER)).frames()  # what is loaded once is there
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def impatient() -> Iterator[None]:
    def hang(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_the_limits_hold() -> None:
    """What the examples rely on."""
    with pytest.raises(MemoryError):
        np.ones(SPARE, np.int16)
    with pytest.raises(HangError), impatient():
        signal.raise_signal(signal.SIGALRM)


# Files

FAMILY = """
seed: 3
sensor: {width: 14, height: 11}
steps: 4
upsampling: 2
noise: {background: 0.01, event: 0.1}
actors:
  - shape: circle
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: 0}
    scale: {start: 8, acceleration: 0}
sweep: {time_scale: [0.5, 2], steps: [4, 2]}
"""
WORDS = (0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
NUMBERS = (*WORDS, -1, -(2**63), 2**64, 10**30, 0.5, 1e308)
VALUES = (*NUMBERS, None, True, "", "I64", "F64", "x" * 1000, [], {}, [[]], [0], [-1, 2], {"a": {}})


def everything(recording: Recording) -> tuple[Any, ...]:
    arrays = (recording.keys, recording.background, recording.truth)
    size = (recording.width, recording.height, recording.steps, recording.step_us)
    return (recording.identity, size, *(array.tobytes() for array in arrays))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "data"
    gerd.generate(gerd.parse(FAMILY), folder, 3, workers=1)
    return folder


@pytest.fixture(scope="module")
def originals(sound: Path) -> list[Any]:
    return [everything(recording) for recording in gerd.Recordings(sound)]


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with one to three faults of the kinds that disks, networks and people make."""
    result = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(0, len(result) - 1)))
        kind = draw(st.sampled_from(["flip", "cut", "drop", "insert", "word", "zeros", "move"]))
        length = draw(st.sampled_from([1, 2, 8, 64, 512]))
        if kind == "flip" and result:
            result[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del result[place:]
        elif kind == "drop":
            del result[place : place + length]
        elif kind == "insert":
            result[place:place] = draw(st.binary(min_size=1, max_size=length))
        elif kind == "word":
            result[place : place + 8] = draw(st.sampled_from(WORDS)).to_bytes(8, "little")
        elif kind == "zeros":
            result[place : place + length] = bytes(length)
        else:
            result[place : place + length] = result[:length]
    return bytes(result)


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from leaves(node[key], (*path, key))


def replaced(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


@st.composite
def edited(draw: st.DrawFn, document: Any, values: tuple[Any, ...] = VALUES) -> Any:
    """A JSON document with one to three values replaced, by nonsense or by other parts of it."""
    for _ in range(draw(st.integers(1, 3))):
        places = list(leaves(document))
        place = draw(st.sampled_from(places))
        other = draw(st.sampled_from(places))
        value = document
        for key in other:
            value = value[key]
        document = replaced(document, place, draw(st.sampled_from([*values, value])))
    return document


def readable(folder: Path, originals: list[Any]) -> int:
    """How many recordings can be read; each is as it was, or refused, and the same is true of parts of it."""
    count = 0
    try:
        data = gerd.Recordings(folder)
        length = len(data)
    except gerd.StorageError:
        return 0
    for position in range(min(length, len(originals))):
        try:
            recording = data[position]
            assert everything(recording) == originals[position]
            count += 1
            recording.frames()
        except gerd.StorageError:
            pass
        try:
            assert data.truth(position).tobytes() == originals[position][-1]
            first = data.window(position, 0, 1)
            assert first.truth.tobytes() == originals[position][-1][: first.truth.nbytes]
        except gerd.StorageError:
            continue
    return count


def with_file(sound: Path, name: str, data: bytes, look: Callable[[Path], Any]) -> Any:
    """What `look` gives for a copy of the dataset in which one file is another."""
    with tempfile.TemporaryDirectory() as folder, impatient():
        for file in sound.iterdir():
            (Path(folder) / file.name).write_bytes(data if file.name == name else file.read_bytes())
        return look(Path(folder))


def meaning(data: bytes) -> Any:
    """The JSON that the bytes are, whose spaces do not count; other bytes as they are."""
    try:
        return json.loads(data)
    except ValueError:
        return data


@few_and_many(120)
@pytest.mark.parametrize("name", [shard_name(0), MANIFEST, RESOLVED])
def test_damaged_bytes(name: str, examples: int, sound: Path, originals: list[Any]) -> None:
    content, refused = (sound / name).read_bytes(), 0

    @settings(max_examples=examples)
    @given(damaged(content))
    def each(data: bytes) -> None:
        nonlocal refused
        refused += with_file(sound, name, data, lambda folder: readable(folder, originals)) < len(originals)
        if meaning(data) != meaning(content):
            assert with_file(sound, name, data, noticed)

    each()
    assert refused > examples // 4


def with_header(content: bytes, header: Any) -> bytes:
    """By whoever knows the format: with a valid checksum."""
    length = int.from_bytes(content[:8], "little")
    written = json.dumps(header).encode()
    start = json.loads(content[8 : 8 + length])["checksum"]["data_offsets"][0]
    prefix = len(written).to_bytes(8, "little") + written + content[8 + length : 8 + length + start]
    return prefix + xxhash.xxh3_64(prefix).digest()[::-1] + content[8 + length + start + 8 :]


def accepted_by_safetensors(data: bytes) -> bool:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            with safe_open(file.name, framework="numpy") as opened:
                return bool(opened.metadata())
        except (SafetensorError, OSError):
            return False


@few_and_many(150)
def test_nonsense_in_headers(examples: int, sound: Path, originals: list[Any]) -> None:
    """The header of a shard, and the JSON in it; what is accepted, safetensors' own reader accepts, too."""
    content = (sound / shard_name(0)).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = json.loads(header["__metadata__"]["gerd"])
    folder, accepted = Folder(sound), 0

    def inside(other: Any) -> Any:
        return {**header, "__metadata__": {"gerd": json.dumps(other)}}

    @settings(max_examples=examples)
    @given(st.one_of(edited(header), edited(about).map(inside)))
    def each(changed: Any) -> None:
        nonlocal accepted
        data = with_header(content, changed)
        readable_ = with_file(sound, shard_name(0), data, lambda place: readable(place, originals))
        assert isinstance(readable_, int)
        try:
            with_file(sound, shard_name(0), data, lambda place: Shard(Folder(place).open(shard_name(0))))
        except gerd.StorageError:
            return
        accepted += 1
        assert accepted_by_safetensors(data)

    each()
    assert Shard(folder.open(shard_name(0)))
    assert accepted < examples


@few_and_many(100)
def test_nonsense_in_manifests(examples: int, sound: Path, originals: list[Any]) -> None:
    @settings(max_examples=examples)
    @given(edited(json.loads((sound / MANIFEST).read_text())))
    def each(changed: Any) -> None:
        data = json.dumps(changed).encode()
        with_file(sound, MANIFEST, data, lambda folder: readable(folder, originals))
        with_file(sound, MANIFEST, data, noticed)

    each()


def test_sizes_that_only_a_bomb_has(sound: Path) -> None:
    """A short file whose header or offsets speak of terabytes, with everything else made to fit."""
    content = (sound / shard_name(0)).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    bombs = [
        (2**40).to_bytes(8, "little") + content[8:],
        (2**63).to_bytes(8, "little") + content[8:],
        with_header(content, {**header, "events": {**header["events"], "shape": [2**40]}}),
        with_header(content, {**header, "events": {**header["events"], "shape": [2**40], "data_offsets": [0, 2**42]}}),
    ]
    for data in bombs:
        assert "is damaged" in with_file(sound, shard_name(0), data, noticed)[-1]


def test_a_file_that_is_cut_while_it_is_read(sound: Path, tmp_path: Path) -> None:
    """An error, where a memory map would be a crash."""
    for file in sound.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    data = gerd.Recordings(tmp_path)
    assert len(data[0]) > 0
    with open(tmp_path / shard_name(0), "r+b") as file:
        file.truncate(100)
    with pytest.raises(gerd.StorageError, match="is damaged: it ends too early"):
        data[1]


# Configs

TEXTS = [file.read_text() for file in sorted((ROOT / "configs").rglob("*.yaml"))] + [
    STARTER,
    FAMILY,
    "actors:\n  - {shape: {polygon: [[0, 0], [0.5, 0], [0, 0.5]]}, scale: {velocity: {factor: 1.01}}}\n"
    "  - {shape: {svg: 'M0 0 L10 0 L5 8 Z'}, rotation: {acceleration: {expression: 'sin(t / 3) * 2'}}}\n"
    "  - {shape: {text: 'g'}, shear: {start: uniform, acceleration: {profile: pulse, amplitude: 1, at: 3}}}\n",
]
# What may stand in the place of a value, separated by bars, and of a key.
NONSENSE = """
0|-1|1|2|0.5|1e308|-1e308|1e-308|.nan|.inf|-.inf|99999999999999999999|100000000|16384|100000|true|null|~|''|x|uniform
centre|bounce|wrap|free|zero|subtract|square|circle|{}|[]|[1]|[1, 2]|[2, 1]|[1, 2, 3]|{uniform: [0, 1]}|[[], []]
{uniform: [1, 0]}|{normal: [0, 1]}|{normal: [0, -1]}|{normal: [0, 1e9]}|{choice: [1]}|{choice: []}|{boundary: 1}
{factor: 2}|{factor: 1e6}|{expression: t}|{expression: '9**9**9'}|{expression: '1/t'}|{expression: '2**(t*99)'}
{function: 'os:system'}|{profile: sine, amplitude: 1}|{profile: pulse, amplitude: 1e9, duration: 1e9}|{text: '7'}
{text: ' '}|{svg: 'M0 0'}|{svg: 'M0 0L1 0L0 1Z'}|{svg: 'M0 0A1 1 0 0 1 9 9Z'}|{mask: nothing.png}|{mask: /dev/zero}
{polygon: [[0, 0]]}|{polygon: [[0, 0], [1, 0], [0, 1]]}|!!binary aGk=|&a [*a]|*b|<<: *a|!!python/object:os.system
!!float|0x10|0o17|1_000|2026-11-15|12:30:45|{steps: [1, 2]}|{time_scale: [0.5, 1000]}|{seed: [1, 2]}|? x
{sensor.width: [1, 9]}|{actors: [[]]}|{steps: [1, 100000000]}|{noise.event: [0, 2]}|{a.b.c: [1]}|- - -
"""
NAMES = """
seed sensor steps step_us time_scale upsampling integrator noise actors sweep width height threshold reset initial
warmup background shape event intensity translation scale rotation shear start velocity acceleration border margin
limits speed_limit uniform normal choice boundary factor profile expression function polygon svg mask text
"""
SCALARS = NONSENSE.strip().replace("\n", "|").split("|")
KEYS = NAMES.split()


@st.composite
def mutated_text(draw: st.DrawFn) -> str:
    """A valid config with one to four places changed, by characters and by lines."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(text) - 1)))
        length = draw(st.integers(1, 12))
        kind = draw(st.sampled_from(["drop", "insert", "replace", "word", "line", "repeat", "indent"]))
        characters = st.text(
            st.sampled_from("{}[]:,#&*!|>'\"%@`-? \n\t0123456789.eE+abcxyz\0\ud7ff€😀"), max_size=length
        )
        if kind == "drop":
            text = text[:place] + text[place + length :]
        elif kind == "insert":
            text = text[:place] + draw(characters) + text[place:]
        elif kind == "replace":
            text = text[:place] + draw(characters) + text[place + length :]
        elif kind == "word":
            text = text[:place] + draw(st.sampled_from(SCALARS)) + text[place + length :]
        else:
            lines = text.split("\n")
            line = draw(st.integers(0, len(lines) - 1))
            if kind == "line":
                del lines[line]
            elif kind == "repeat":
                lines[line:line] = lines[line : line + length]
            else:
                lines[line] = " " * draw(st.integers(0, 6)) + lines[line].strip()
            text = "\n".join(lines)
    return text


@st.composite
def mutated_values(draw: st.DrawFn) -> str:
    """A valid config with one to four values, keys or whole parts changed; the YAML itself is in order."""
    document = yaml.safe_load(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        places = list(leaves(document))
        place = draw(st.sampled_from(places))
        kind = draw(st.sampled_from(["nonsense", "other", "key", "drop", "nest", "many"]))
        value = document
        for key in place:
            value = value[key]
        if kind == "nonsense":
            value = _loaded(draw(st.sampled_from(SCALARS)))
        elif kind == "other":
            value = document
            for key in draw(st.sampled_from(places)):
                value = value[key]
        elif kind == "key" and isinstance(value, dict):
            value = {**value, draw(st.sampled_from(KEYS)): _loaded(draw(st.sampled_from(SCALARS)))}
        elif kind == "drop" and isinstance(value, dict | list) and value:
            rest = draw(st.sampled_from(list(value if isinstance(value, dict) else range(len(value)))))
            value = {k: v for k, v in value.items() if k != rest} if isinstance(value, dict) else value[:rest]
        elif kind == "nest":
            value = [value] if draw(st.booleans()) else {draw(st.sampled_from(KEYS)): value}
        elif kind == "many":
            value = [value] * draw(st.sampled_from([2, 3, 65]))
        document = replaced(document, place, value)
    return yaml.safe_dump(document)


def _loaded(word: str) -> Any:
    if "*" in word:
        return word  # an alias needs the rest of its text
    try:
        return yaml.safe_load(word)
    except (yaml.YAMLError, ValueError, IndexError):
        return word


def look(text: str) -> str:
    """What becomes of a config: it is refused when it is read, or when it is checked, or it can be used."""
    outcome, message = "refused", ""
    with impatient(), redirect_stdout(io.StringIO()):
        try:
            config = gerd.parse(text, directory=ROOT / "configs")
            outcome = "cannot be drawn"
            dry_run(config, 10)
            outcome = "good"
        except gerd.GerdError as error:
            message = str(error)
    assert bool(message) == (outcome != "good")
    assert len(message) < 20_000
    if outcome == "good":
        assert gerd.parse(json.dumps(config.resolved())).digest == config.digest
    return outcome


@few_and_many(150, 10_000)
def test_mutations_of_configs(examples: int) -> None:
    outcomes: dict[str, int] = {}

    @settings(max_examples=examples)
    @given(st.one_of(mutated_text(), mutated_values()))
    def each(text: str) -> None:
        outcome = look(text)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    each()
    assert set(outcomes) >= {"refused", "good"}, outcomes
