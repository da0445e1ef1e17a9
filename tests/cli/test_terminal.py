"""What is printed cannot act on the terminal, and odd words on the command line are messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.datasets import SMALL, change_manifest, make
from support.processes import COMMAND, DEADLINE, run_here

import gerd
from gerd.cli.terminal import printable
from gerd.config.digest import digest_of
from gerd.storage.manifest import MANIFEST, RESOLVED, json_bytes

TITLE = "\x1b]0;owned\x07"  # what changes the title of a terminal's window
EVIL = f"1.0{TITLE}\x1b[2K\rok \x9b2J \u202e\n"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal") / "data"
    make(folder, SMALL, 2)
    return folder


def version(folder: Path) -> None:
    change_manifest(folder, gerd_version=EVIL)


def digest(folder: Path) -> None:
    change_manifest(folder, config_digest=EVIL)


def code(folder: Path) -> None:
    change_manifest(folder, code_digest=EVIL)


def unfinished(folder: Path) -> None:
    change_manifest(folder, complete=False, shards=[], gerd_version=EVIL)


def sweep(folder: Path) -> None:
    change_manifest(folder, sweep={EVIL: [EVIL]}, seed=3)


def shard(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    change_manifest(folder, shards=[{**manifest["shards"][0], "file": EVIL}])


def shape(folder: Path) -> None:
    """A config that is sound, in which a name is not."""
    resolved = json.loads((folder / RESOLVED).read_text())
    resolved["sweep"] = {"actors.0.shape": [{"text": EVIL}, {"text": "a"}]}
    (folder / RESOLVED).write_bytes(json_bytes(resolved))
    change_manifest(folder, config_digest=digest_of(resolved), members=2, count=1)


def key(folder: Path) -> None:
    resolved = json.loads((folder / RESOLVED).read_text())
    resolved["actors"][0][EVIL] = EVIL
    (folder / RESOLVED).write_bytes(json_bytes(resolved))
    change_manifest(folder, config_digest=digest_of(resolved))


def unread(folder: Path) -> None:
    (folder / f"shard-{TITLE}.safetensors").touch()


COMMANDS = (
    ("info", "data"),
    ("verify", "data"),
    ("generate", "config.yaml", "data", "-n", "3", "--workers", "1"),
    ("export", "data", "out", "--format", "csv"),
    ("render", "data", "out.png"),
    ("play", "data", "--speed", "inf", "--truth", "-", "--to", "events"),
)


@pytest.mark.parametrize("forge", [version, digest, code, unfinished, sweep, shard, shape, key, unread])
def test_the_text_of_a_dataset_is_printed_escaped(
    forge: Callable[[Path], None],
    sound: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = ""
    for command in COMMANDS:
        shutil.rmtree("data", ignore_errors=True)
        shutil.copytree(sound, "data")
        Path("config.yaml").write_text(SMALL)
        forge(Path("data"))
        assert run_here(*command) in (0, 1)
        caught = capsys.readouterr()
        printed += caught.out + caught.err
    assert printed
    assert [c for c in printed if not c.isprintable() and c not in "\n\t"] == []


def test_the_names_in_a_config_are_printed_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"a{TITLE}.yaml"
    Path(name).write_text("steps: 2\nsweep: {actors.0.shape: [circle, square]}\nactors: [{shape: circle}]\n")
    Path("wrong.yaml").write_text(f"steps: {json.dumps(TITLE)}\nactors: []\n{json.dumps(TITLE)}: 1\n")
    for command in (["check", name], ["check", "wrong.yaml"], ["render", name, "a.png"], ["check", f"{TITLE}.yaml"]):
        assert run_here(*command) in (0, 1, 2)
    caught = capsys.readouterr()
    assert r"\x1b]0;owned\x07" in caught.out
    assert r"\x1b]0;owned\x07" in caught.err
    assert [c for c in caught.out + caught.err if not c.isprintable() and c not in "\n\t"] == []


def test_what_can_be_seen_stays() -> None:
    text = "äöü 漢字 µs × 🙂 'a\tb'\nc ²⁸ −1"
    assert printable(text) == text
    assert printable(text, lines=False) == text.replace("\n", "\\n")
    assert printable("\x1b[0m \x9b \u2028 \u200b \ud800") == r"\x1b[0m \x9b \u2028 \u200b \ud800"


ODD = {
    "udp://..:3333": "there is no such host",
    f"udp://{'a' * 300}:3333": "there is no such host",
    f"udp://{'a.' * 150}:3333": "there is no such host",
    f"udp://localhost:{'9' * 5000}": "with a port from 1 to 65535",
    f"udp://localhost:{'0' * 5000}": "with a port from 1 to 65535",
    "udp://localhost:٣٣٣": "with a port from 1 to 65535",
    "b" * 300: "cannot be written: File name too long",
}


@pytest.mark.parametrize("to", ODD, ids=lambda to: to[:20])
def test_receivers_that_there_cannot_be_are_messages(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(SMALL)
    assert run_here("play", "config.yaml", "--to", to) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert ODD[to] in said
    assert len(said) < 400


def test_a_port_may_have_zeros_in_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(SMALL)
    assert run_here("play", "config.yaml", "--to", "udp://127.0.0.1:0003333", "--speed", "inf") == 0


@pytest.mark.parametrize("speed", ["1e308", "1.7e308", "1e15"])
def test_any_speed_sends_all_events(speed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(SMALL)
    assert run_here("play", "config.yaml", "--to", "events.csv", "--speed", speed) == 0
    assert len(Path("events.csv").read_text().splitlines()) == 1 + len(gerd.simulate(gerd.parse(SMALL)))


@pytest.mark.parametrize("ending", ["png", "gif", "html", "svg", "pdf"])
def test_a_name_that_is_too_long_is_a_message(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(SMALL)
    assert run_here("render", "config.yaml", f"{'a' * 300}.{ending}") == 1
    assert re.search(r"^error: a+\.\w+: cannot be written: File name too long$", capsys.readouterr().err, re.MULTILINE)
    assert os.listdir() == ["config.yaml"]


@pytest.mark.parametrize("name", [r"$\foo$", r"a\$b$c"])
def test_names_are_no_formulas(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the config, of a shape and of swept values, in every kind of picture."""
    monkeypatch.chdir(tmp_path)
    shapes = json.dumps([{"text": name.replace("\\", "")}, "square"])
    Path(f"{name}.yaml").write_text(
        f"steps: 3\nsensor: {{width: 20, height: 20}}\nsweep: {{actors.0.shape: {shapes}}}\n"
        "actors: [{shape: square, scale: {start: 8}, translation: {velocity: [1, 0]}}]\n"
    )
    for kind in ("sheet", "curves", "stages"):
        assert run_here("render", f"{name}.yaml", f"{kind}.svg", "--kind", kind) == 0, kind
    assert run_here("render", f"{name}.yaml", "family.png", "--family") == 0


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from gerd.cli.app import main
main()
"""


@pytest.mark.parametrize("room", [0, 1000, 5000])
def test_a_starter_config_on_a_full_disk(room: int, tmp_path: Path) -> None:
    """There is no file, or a whole one: an editor would take a part of the schema for all of it."""
    command = [sys.executable, "-c", FULL, str(room), "new", "mine.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"error: \S+: cannot be written: File too large\n", done.stderr)
    assert os.listdir(tmp_path) == []
    subprocess.run([*COMMAND, "new", "mine.yaml"], cwd=tmp_path, check=True, capture_output=True, timeout=DEADLINE)
