"""The command line: what it prints, what it exits with, and that a user's mistake is never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import processes
from support.processes import errors_of

import gerd
from gerd.cli.app import app, main
from gerd.config.sweep import labels
from gerd.page.render import render

CONFIGS = [
    file
    for folder in ("", "families")
    for file in sorted((Path(__file__).parents[2] / "configs" / folder).glob("*.yaml"))
]
SMALL = "seed: 4\nsensor: {width: 30, height: 20}\nsteps: 7\nnoise: {background: 0.01}\nactors: [{shape: circle}]\n"


class Ran:
    def __init__(self, code: int, out: str, error: str):
        self.code, self.out, self.error = code, out, error


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Runs a command in an empty folder that holds small.yaml."""
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)

    def ran(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["gerd", *arguments])
        capsys.readouterr()
        try:
            main()
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)

    return ran


# Light imports


HEAVY = {"torch", "numpy", "pydantic", "matplotlib", "numba", "PIL", "yaml", "safetensors"}


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import gerd.cli.app", HEAVY),
        ("import gerd; gerd.ConfigError", HEAVY),
        ("import gerd; gerd.simulate(gerd.parse('{steps: 2, actors: []}'))", {"torch", "matplotlib", "PIL"}),
        ("import gerd.cli.describe, gerd.storage.generate, gerd.exchange.export", {"torch", "matplotlib", "PIL"}),
    ],
)
def test_what_is_heavy_is_not_imported(statement: str, heavy: set[str]) -> None:
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert "gerd" in loaded
    assert not loaded & heavy


# Help


def test_help_lists_the_commands(run: Any) -> None:
    listed = run("--help")
    assert listed.code == 0
    for command in app.registered_commands:
        name = command.callback.__name__
        assert re.search(rf"\b{name}\b", listed.out)
        assert run(name, "--help").code == 0
        assert run(name, "-h").out == run(name, "--help").out


def test_version(run: Any) -> None:
    shown = run("--version")
    assert (shown.code, shown.out) == (0, f"gerd {gerd.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["check"],
        ["check", "small.yaml", "--nothing"],
        ["generate", "small.yaml"],
        ["generate", "small.yaml", "data", "-n", "0"],
        ["generate", "small.yaml", "data", "-n", "many"],
        ["generate", "small.yaml", "data", "--workers", "0"],
        ["render", "small.yaml", "a.gif", "--fps", "nan"],
        ["render", "small.yaml", "a.gif", "--zoom", "0"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_makes_nothing(arguments: list[str], run: Any) -> None:
    refused = run(*arguments)
    assert refused.code == 2
    assert refused.error
    assert os.listdir() == ["small.yaml"]


# new


def test_new_writes_a_config_that_works_and_overwrites_nothing(run: Any) -> None:
    written = run("new")
    assert (written.code, written.out) == (
        0,
        "wrote gerd.yaml, and gerd-schema.json for editors; next: gerd check gerd.yaml\n",
    )
    text = Path("gerd.yaml").read_text()
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert named
    assert Path(named[1]).read_text("utf-8") == run("schema").out
    assert gerd.parse(text).actors[0].shape == "square"
    assert run("check", "gerd.yaml").code == 0
    for name in ("gerd.yaml", "small.yaml"):
        again = run("new", name)
        assert (again.code, again.error) == (1, f"error: {name}: exists already; give another name\n")
    assert Path("gerd.yaml").read_text() == text
    assert Path("small.yaml").read_text() == SMALL
    assert run("new", "no/such/folder.yaml").error.startswith("error: no/such/folder.yaml: cannot be written")


def test_every_line_of_the_starter_can_be_switched_on(run: Any) -> None:
    run("new", "a name.yaml")
    text = Path("a name.yaml").read_text()
    assert "gerd check 'a name.yaml'" in text
    switched_on = re.sub(r"^# (sweep:.*)\n#(   ?.*)$", r"\1\n\2", text, flags=re.MULTILINE)
    assert gerd.parse(switched_on).sweep == {"time_scale": (0.5, 1, 2)}


# schema


def accepts(schema: Any, value: Any, root: dict[str, Any]) -> bool:
    """Whether a JSON schema accepts a value; knows the keywords that the schema uses and stumbles over others."""
    types = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "null": type(None)}
    number = isinstance(value, int | float) and not isinstance(value, bool)
    length = len(value) if isinstance(value, str | list) else None
    for key, wanted in schema.items():
        match key:
            case "$ref":
                good = accepts(root["$defs"][wanted.removeprefix("#/$defs/")], value, root)
            case "anyOf":
                good = any(accepts(option, value, root) for option in wanted)
            case "oneOf":
                good = sum(accepts(option, value, root) for option in wanted) == 1
            case "type":
                good = isinstance(value, types[wanted]) and not isinstance(value, bool)
            case "enum":
                good = value in wanted
            case "const":
                good = value == wanted
            case "properties" if isinstance(value, dict):
                good = all(accepts(part, value[name], root) for name, part in wanted.items() if name in value)
            case "required" if isinstance(value, dict):
                good = set(wanted) <= set(value)
            case "additionalProperties" if isinstance(value, dict):
                others = [value[name] for name in value if name not in schema.get("properties", {})]
                good = all(wanted is not False and accepts(wanted, other, root) for other in others)
            case "prefixItems" if isinstance(value, list):
                good = all(accepts(part, item, root) for part, item in zip(wanted, value, strict=False))
            case "items" if isinstance(value, list):
                rest = value[len(schema.get("prefixItems", ())) :]
                good = all(accepts(wanted, item, root) for item in rest)
            case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if number:
                above, equal = (value > wanted, value == wanted)
                good = (equal and "exclusive" not in key) or (above if "inimum" in key else not above and not equal)
            case "minItems" | "minLength" if length is not None:
                good = length >= wanted
            case "maxItems" | "maxLength" if length is not None:
                good = length <= wanted
            case "title" | "description" | "default" | "$defs" | "examples":
                good = True
            case "properties" | "required" | "additionalProperties" | "prefixItems" | "items":
                good = True
            case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
                good = True
            case "minItems" | "minLength" | "maxItems" | "maxLength":
                good = True
            case _:
                raise AssertionError(f"the schema uses {key}, which this test does not know")
        if not good:
            return False
    return True


def test_the_schema_accepts_the_examples_and_no_nonsense(run: Any) -> None:
    printed = run("schema")
    schema = json.loads(printed.out)
    assert printed.code == 0
    assert set(schema["properties"]) == set(gerd.Config.model_fields)
    for file in CONFIGS:
        assert accepts(schema, yaml.safe_load(file.read_text()), schema), file
    assert accepts(schema, yaml.safe_load(SMALL), schema)
    for nonsense in (
        {},
        {"actors": 3},
        {"actors": [], "step": 3},
        {"actors": [], "steps": 0},
        {"actors": [], "noise": {"event": 2}},
        {"actors": [{"shape": "hexagon"}]},
        {"actors": [{"shape": "circle", "rotation": {"velocity": {"unifrom": [0, 1]}}}]},
        {"actors": [{"shape": "circle", "translation": {"border": "brick"}}]},
        {"actors": [], "transform": [{"rotat": 3}]},
        {"actors": [], "transform": [{"rotate": 3, "boost": [1, 0]}]},
        {"actors": [], "time_scale": {"factor": 2, "keep": "it"}},
    ):
        assert not accepts(schema, nonsense, schema), nonsense


# check


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if none were compiled yet; whoever asks for them fails."""
    monkeypatch.setattr("gerd.events.cpu.run.are_kept", lambda _: False)
    monkeypatch.setattr("gerd.events.cpu.run.kernels", None)


FROM_THE_LEFT = "[{shape: circle, translation: {start: [-%d, 9], velocity: [1, 0], acceleration: 0, border: free}}]"


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize(
    ("actors", "timing", "warning"),
    [
        ("[]", "step", "there are no actors"),
        ("[{shape: circle}]", "exact", "nothing moves"),
        (FROM_THE_LEFT % 90, "exact", "what moves is outside the frame, hidden, or too faint"),
        (FROM_THE_LEFT % 40, "step", None),
        ("[{shape: circle, intensity: 0, translation: {velocity: 1}}]", "step", "what moves is outside the frame, hid"),
        ("[{shape: circle, translation: {velocity: 1}}]", "step", None),
    ],
)
def test_check_warns_of_a_scene_without_events(actors: str, timing: str, warning: str | None, run: Any) -> None:
    """Noise is none, and something that comes late is some. Nothing is compiled for it."""
    options = ["--set", f"actors={actors}", "--set", f"timing={timing}", "--set", "steps=60"]
    shown = run("check", "small.yaml", *options)
    silent = gerd.simulate(gerd.load("small.yaml", overrides=options[1::2]), backend="torch").background.all()
    assert shown.code == 0
    assert silent == (warning is not None)
    assert shown.error.startswith(f"warning: index 0: makes no events: {warning}") if silent else not shown.error


def test_check_names_the_silent_members_of_a_sweep(run: Any) -> None:
    moving = "actors=[{shape: circle, translation: {}}]"
    swept = "sweep={actors.0.intensity: [0.7, 0], step_us: [1000]}"
    shown = run("check", "small.yaml", "--set", moving, "--set", swept)
    (warning,) = shown.error.splitlines()
    assert warning.startswith("warning: index 0, member 1 (actors.0.intensity=0, step_us=1000): makes no events: ")
    assert re.search(r"events +about \d+ per recording.*", shown.out)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_check_shows_what_a_config_would_make(file: Path, run: Any) -> None:
    shown = run("check", str(file), "-n", "3")
    config = gerd.load(file)
    first = gerd.simulate(config, **labels(config, 0))
    assert (shown.code, shown.error) == (0, "")
    assert f"frame       {first.width}×{first.height}, {first.steps} steps" in shown.out
    members = int(np.prod([len(values) for values in config.sweep.values()]))
    assert f"recordings  {3 * members}" in shown.out
    assert shown.out.count("actor ") == len(config.actors)
    x = first.positions[0, 0, 0]
    assert f"{x:.5g}  {first.parameters_velocity['x'][0, 0]:+.3g}" in shown.out


def test_the_size_that_check_foretells_is_about_right(run: Any) -> None:
    text = run("check", "small.yaml", "-n", "100").out
    number, unit = re.search(r"size +about ([\d.e+]+) (\w+), ", text).groups()  # type: ignore[union-attr]
    events = re.search(r"events +about (\d+) per recording, (.*) % of them background noise", text)
    together = re.search(r"together +(\d+) to (\d+) events, in 99 of 100 such cases", text)
    assert events
    assert together
    run("generate", "small.yaml", "data", "-n", "100", "--workers", "1")
    data = gerd.Recordings("data")
    counts = [len(recording) for recording in data]
    assert 0.8 < int(events[1]) / np.mean(counts) < 1.2
    assert int(together[1]) <= sum(counts) <= int(together[2])
    noise = 100 * sum(recording.background.sum() for recording in data) / sum(counts)
    assert float(events[2]) == pytest.approx(noise, rel=0.1)
    size = sum(file.stat().st_size for file in Path("data").glob("*.safetensors"))
    assert 0.7 < float(number) * {"bytes": 1, "kB": 1e3, "MB": 1e6}[unit] / size < 1.4


def test_check_looks_at_the_members_of_a_sweep(run: Any) -> None:
    """Their size, and whether they can be drawn at all; the config without the sweep is none of them."""
    Path("long.yaml").write_text("steps: 5\nactors: [{shape: square, rotation: {}}]\nsweep: {steps: [10, 10000]}\n")
    assert "10 steps" in (shown := run("check", "long.yaml", "-n", "100").out)
    assert "MB" in shown
    turning = (
        "actors: [{shape: square, rotation: {velocity: {boundary: 1}}}]\nsweep: {actors.0.shape: [square, circle]}\n"
    )
    Path("turning.yaml").write_text(turning)
    assert run("check", "turning.yaml").code == 2


def test_check_of_a_very_long_recording(run: Any) -> None:
    Path("long.yaml").write_text(
        "steps: 100000000\nsensor: {width: 30, height: 20}\nactors: [{shape: square, rotation: {velocity: 1}}]\n"
    )
    checked = run("check", "long.yaml")
    assert checked.code == 0
    assert "100000000 steps" in checked.out
    refused = run("generate", "long.yaml", "data")
    assert refused.code == 2
    assert refused.error.startswith("error: long.yaml:1: steps: got 100000000: makes 858 GiB of ground truth")
    assert not Path("data").exists()


def test_check_of_many_actors_and_of_none(run: Any) -> None:
    Path("many.yaml").write_text("sensor: {width: 30, height: 20}\nactors:\n" + "  - shape: circle\n" * 20)
    shown = run("check", "many.yaml").out
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("actor ") + int(re.search(r"and (\d+) more actors", shown)[1]) == 20  # type: ignore[index]
    Path("none.yaml").write_text("actors: []\n")
    assert run("check", "none.yaml").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["check", "nothing.yaml"], 2, "nothing.yaml: there is no such file"),
        (["check", "bad.yaml"], 2, "bad.yaml:2: noise.background"),
        (["check", "small.yaml", "--set", "steps=0"], 2, "--set steps=0: steps"),
        (["check", "endless.yaml"], 2, "endless.yaml:1: integrator.warmup: got 100000"),
        (["generate", "bad.yaml", "data"], 2, "bad.yaml:2: noise.background"),
        (["generate", "small.yaml", "small.yaml"], 1, "small.yaml: is a file"),
        (["generate", "small.yaml", "."], 1, ".: holds files that are not a GERD dataset"),
        (["info", "nothing"], 1, "nothing: there is no such dataset"),
        (["info", "small.yaml"], 1, "small.yaml: is a file"),
        (["info", "."], 1, ".: has no manifest.json"),
        (["verify", "nothing"], 1, "nothing: there is no such dataset"),
        (["render", "small.yaml", "out.jpg"], 1, "out.jpg: the file to write must end in one of .gif"),
        (["render", "nothing", "out.gif"], 2, "nothing: there is no such file"),
        (["render", ".", "out.gif"], 1, ".: has no manifest.json"),
        (["render", "small.yaml", "out.gif", "--index", "4294967296"], 1, "index 4294967296"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_mistakes_are_messages(arguments: list[str], code: int, message: str, run: Any) -> None:
    Path("bad.yaml").write_text("actors: []\nnoise: {background: 2}\n")
    Path("endless.yaml").write_text(
        "integrator: {warmup: 100000}\ntime_scale: 100\nactors: [{shape: square, rotation: {velocity: 1}}]\n"
    )
    refused = run(*arguments)
    assert refused.error.startswith(f"error: {message}")
    assert refused.code == code
    assert refused.out == ""
    assert not Path("data").exists()
    assert not Path("out.gif").exists()


# generate, info, verify


def test_a_dataset_from_start_to_end(run: Any) -> None:
    made = run("generate", "small.yaml", "data", "-n", "70", "--workers", "1", "--set", "sweep={time_scale: [1, 2]}")
    assert (made.code, made.error) == (0, "")
    assert re.match(r"data: 140 recordings in 3 shards \(.* s, 140 made or checked at .* recordings/s\)\n", made.out)
    again = run("generate", "small.yaml", "data", "-n", "70", "--set", "sweep={time_scale: [1, 2]}")
    assert re.match(r"data: 140 recordings in 3 shards \([\d.]+ s\)\n", again.out)

    data = gerd.Recordings("data")
    told = run("info", "data")
    assert (told.code, told.error) == (0, "")
    for line in (
        "dataset     data, complete",
        "recordings  140 (70 indices × 2 members of the sweep) in 3 shards",
        "sweep       time_scale: 1, 2",
        "frame       30×20, 7 steps of 1000 µs",
        "actors      circle",
        f"events      {sum(map(len, data))}; per recording {min(map(len, data))} to {max(map(len, data))}, ",
    ):
        assert line in told.out

    assert run("verify", "data").out == "data: 140 recordings, all sound\n"
    sound = run("verify", "data", "--regenerate")
    assert (sound.code, sound.out) == (0, "data: 140 recordings, all sound and the same when made again\n")

    refused = run(
        "generate", "small.yaml", "data", "-n", "70", "--set", "seed=5", "--set", "sweep={time_scale: [1, 2]}"
    )
    assert (refused.code, refused.error) == (
        1,
        "error: data: holds a different dataset: seed is 4 there and 5 here\n",
    )


def test_verify_prints_every_fault_and_exits_with_1(run: Any) -> None:
    run("generate", "small.yaml", "data", "-n", "130", "--workers", "1")
    for number in (0, 2):
        file = Path(f"data/shard-{number:06d}.safetensors")
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    Path("data/config.yaml").unlink()
    inspected = run("verify", "data")
    assert (inspected.code, inspected.out) == (1, "")
    named = {line.split(": ")[1] for line in inspected.error.splitlines() if line.startswith("error: ")}
    assert named == {"data/config.yaml", "data/shard-000000.safetensors", "data/shard-000002.safetensors"}


def test_info_of_a_dataset_that_is_not_complete(run: Any) -> None:
    run("generate", "small.yaml", "data", "-n", "130", "--workers", "1")
    for number in (0, 2):
        Path(f"data/shard-{number:06d}.safetensors").unlink()
    manifest = json.loads(Path("data/manifest.json").read_text())
    Path("data/manifest.json").write_text(json.dumps({**manifest, "complete": False, "shards": []}))
    told = run("info", "data")
    assert told.code == 0
    assert "dataset     data, the dataset is not complete; run the same generate command to finish it" in told.out
    assert "done        64 of 130 recordings, 1 of 3 shards" in told.out
    assert run("verify", "data").code == 1


# render


def test_options_reach_the_picture(run: Any) -> None:
    recording = gerd.simulate(gerd.load("small.yaml"), 1)
    options = ["--index", "1", "--start", "2", "--zoom", "2", "--fps", "8", "--overlay", "--side-by-side"]
    shown = run("render", "small.yaml", "a.gif", *options)
    assert (shown.code, shown.out) == (0, f"wrote a.gif: {recording!r}\n")
    render(recording, "b.gif", start=2, zoom=2, fps=8.0, overlay=True, side_by_side=True)
    assert Path("a.gif").read_bytes() == Path("b.gif").read_bytes()


def test_a_recording_of_a_dataset_is_rendered(run: Any) -> None:
    run("generate", "small.yaml", "data", "-n", "3", "--workers", "1")
    Path("named").mkdir()
    Path("named/small.yaml").symlink_to("../data")  # the name of the dataset is in the picture
    assert run("render", "named/small.yaml", "a.gif", "--index", "2").code == 0
    assert run("render", "small.yaml", "b.gif", "--index", "2").code == 0
    assert Path("a.gif").read_bytes() == Path("b.gif").read_bytes()
    beyond = run("render", "data", "c.gif", "--index", "3")
    assert (beyond.code, beyond.error) == (1, "error: data: index 3: allowed: 0 to 2\n")
    changed = run("render", "data", "c.gif", "--set", "steps=3")
    assert changed.code == 1
    assert "--set goes with a config" in changed.error
    assert not Path("c.gif").exists()


SWEPT = SMALL.replace("circle", "circle, translation: {velocity: [1, 0.3]}") + (
    "sweep: {time_scale: [0.5, 2], noise.background: [0, 0.01]}\n"
)


def test_index_and_member_mean_the_same_in_every_command(run: Any) -> None:
    """Of a config and of its dataset; and if no member is named, the first, which is said."""
    Path("swept.yaml").write_text(SWEPT)
    run("generate", "swept.yaml", "data", "-n", "3", "--workers", "1")
    data = gerd.Recordings("data")
    for words, row in (
        ([], 4),
        (["--member", "3"], 7),
        (["--member", "time_scale=2", "--member", "noise.background=0"], 6),
    ):
        wanted = data[row]
        for source in ("swept.yaml", "data"):
            played = run("play", source, "--index", "1", "--speed", "inf", "--to", "out.csv", *words)
            lines = Path("out.csv").read_text().splitlines()[1:]
            Path("out.csv").unlink()
            assert [tuple(map(int, line.split(","))) for line in lines] == [
                (t, x, y, p) for x, y, t, p in wanted.events.tolist()
            ]
            rendered = run("render", source, "a.gif", "--index", "1", *words)
            assert rendered.out == f"wrote a.gif: {wanted!r}\n".replace(" data,", f" {source},")
            told = "member 0 of 4, time_scale=0.5, noise.background=0; the others: --member 1 to 3\n"
            assert rendered.error == ("" if words else told)
            assert played.error.startswith("" if words else told)
    assert "index 0, member 0 (time_scale=0.5, noise.background=0), at step 0" in run("check", "swept.yaml").out
    for wrong, message in (
        ("4", "member 4: allowed: 0 to 3"),
        ("time_scale=2", "say which member"),
        ("x", "--member x"),
    ):
        refused = run("render", "swept.yaml", "b.gif", "--member", wrong)
        assert (refused.code, message in refused.error) == (1, True)
    assert not Path("b.gif").exists()


def test_a_family_is_rendered(run: Any) -> None:
    Path("swept.yaml").write_text(SWEPT)
    shown = run("render", "swept.yaml", "a.gif", "--family", "--index", "2")
    assert (shown.code, shown.out) == (0, "wrote a.gif: swept.yaml, index 2, all 4 members\n")
    gerd.render("swept.yaml", "b.gif", family=True, index=2)
    assert Path("a.gif").read_bytes() == Path("b.gif").read_bytes()
    assert run("render", "swept.yaml", "a.html", "--family").code == 0
    for wrong in (["--member", "1"], ["--kind", "rate"], ["--set", f"sweep={{steps: {list(range(1, 102))}}}"]):
        assert run("render", "swept.yaml", "b.png", "--family", *wrong).code == 1
    assert not Path("b.png").exists()


# Pipes


@pytest.mark.parametrize("arguments", [["schema"], ["check", "small.yaml"], ["-h"]], ids=" ".join)
def test_a_closed_pipe_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    reading, writing = os.pipe()
    os.close(reading)
    process = processes.start(tmp_path, *arguments, stdout=writing)
    os.close(writing)
    assert errors_of(process) == []


# What a terminal or a system can be short of


def test_a_terminal_that_shows_only_ascii(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for arguments in (["generate", "small.yaml", "data", "-n", "3"], ["info", "data"], ["-h"]):
        assert errors_of(processes.start(tmp_path, *arguments, env=ascii_only)) == []
    (error,) = errors_of(processes.start(tmp_path, "check", "mañana.yaml", env=ascii_only), 2)
    assert "ana.yaml: there is no such file" in error


def test_too_few_open_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    limited = f"ulimit -n 12; exec {sys.executable} -c 'from gerd.cli.app import main; main()' "
    command = ["sh", "-c", limited + "generate small.yaml data -n 200 --workers 2"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=processes.DEADLINE)
    assert result.returncode == 1
    assert "error: the system says: Too many open files" in result.stderr
    assert "Traceback" not in result.stderr
