"""A config may name Python code, and none of it runs until the user says so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gerd
from gerd.cli.app import main
from gerd.config.config import Config

FUNCTION = """\
from pathlib import Path
Path(__file__).with_name("marker").touch()
def push(t):
    return 3.0 * t + 1
def nothing(t):
    pass
class Motions:
    def still(t):
        return 0.0
"""
TEXT = """\
seed: 3
steps: 4
sensor: {{width: 16, height: 16}}
actors:
  - shape: square
    scale: {{start: 5, acceleration: 0}}
    translation: {{acceleration: [{{function: '{module}:{name}'}}, 0], border: free}}
"""


class Folder:
    """A config beside the module that it names, and whether that module has been imported."""

    def __init__(self, path: Path):
        self.path = path
        self.module = "pushes"  # the same in every folder, as may happen
        (path / f"{self.module}.py").write_text(FUNCTION)
        self.config = self.write()

    def write(self, module: str = "", name: str = "push") -> Path:
        file = self.path / f"{module or 'c'}_{name}.yaml"
        file.write_text(TEXT.format(module=module or self.module, name=name))
        return file

    @property
    def code_has_run(self) -> bool:
        return (self.path / "marker").exists()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return Folder(tmp_path)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs `gerd …` in this process; its exit code and what it printed."""

    def ran(*arguments: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["gerd", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return int(end.value.code or 0), printed.out + printed.err

    return ran


def x_accelerations(recording: gerd.Recording) -> list[float]:
    return recording.parameters_acceleration["x"][:, 0].tolist()


class TestWithoutTrust:
    def test_loading_runs_nothing(self, folder: Folder) -> None:
        config = gerd.load(folder.config)
        assert gerd.parse(config.resolved_yaml()).digest == config.digest
        assert not folder.code_has_run

    def test_simulating_is_refused(self, folder: Folder) -> None:
        with pytest.raises(
            gerd.TrustError, match=r"actors\.0\.translation\.acceleration.*:push.*--trust or trust=True"
        ):
            gerd.simulate(gerd.load(folder.config))
        assert not folder.code_has_run

    @pytest.mark.parametrize("command", ["check", "generate", "render"])
    def test_every_command_is_refused(self, command: str, folder: Folder, run: Callable[..., tuple[int, str]]) -> None:
        out = {"check": [], "generate": ["data", "-n", "2", "--workers", "1"], "render": ["out.gif"]}[command]
        code, printed = run(command, folder.config, *out)
        assert code == 2
        assert "allow that with --trust" in printed
        assert not folder.code_has_run

    def test_a_swept_function_is_refused(self, folder: Folder) -> None:
        path = "actors.0.rotation.acceleration"
        swept = f"sweep: {{{path}: [0, {{function: '{folder.module}:push'}}]}}"
        config = gerd.parse(f"actors: [{{shape: square}}]\n{swept}\n", directory=folder.path)
        still, pushed = config.sweep[path]
        gerd.simulate(config, **{path: still})
        with pytest.raises(gerd.TrustError):
            gerd.simulate(config, **{path: pushed})
        assert not folder.code_has_run


class TestWithTrust:
    def test_the_function_gives_the_acceleration(self, folder: Folder) -> None:
        recording = gerd.simulate(gerd.load(folder.config, trust=True))
        assert x_accelerations(recording) == [1.0, 4.0, 7.0, 10.0]
        assert folder.code_has_run

    def test_the_path_of_python_is_left_as_it_was(self, folder: Folder) -> None:
        before = list(sys.path)
        gerd.simulate(gerd.load(folder.config, trust=True))
        assert sys.path == before

    def test_a_name_may_have_dots(self, folder: Folder) -> None:
        config = gerd.load(folder.write(name="Motions.still"), trust=True)
        assert x_accelerations(gerd.simulate(config)) == [0.0] * 4

    def test_check_and_generate_work(self, folder: Folder, run: Callable[..., tuple[int, str]]) -> None:
        assert run("check", folder.config, "--trust")[0] == 0
        code, printed = run("generate", folder.config, "data", "-n", "2", "--workers", "1", "--trust")
        assert code == 0, printed
        assert x_accelerations(gerd.Recordings("data")[1]) == [1.0, 4.0, 7.0, 10.0]

    @pytest.mark.parametrize(
        ("module", "name", "message"),
        [
            ("no_such_module", "push", "cannot be imported"),
            ("", "pull", "cannot be imported"),
            ("math", "pi", "is not a function"),
            ("", "nothing", "failed: TypeError"),
        ],
    )
    def test_what_cannot_be_found_is_named(
        self, module: str, name: str, message: str, folder: Folder, run: Callable[..., tuple[int, str]]
    ) -> None:
        code, printed = run("check", folder.write(module, name), "--trust")
        assert code == 2
        assert f"actors.0.translation.acceleration: got '{module or folder.module}:{name}'" in printed
        assert message in printed


class TestDatasetMadeWithTrust:
    """It has the values of the function, and needs neither the code nor trust in it."""

    @pytest.fixture
    def dataset(
        self, folder: Folder, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Path]:
        """Read where another module has the name of the one that it was made with; it must not be run."""
        run("generate", folder.config, folder.path / "data", "-n", "2", "--workers", "1", "--trust")
        reader = folder.path / "reader"
        reader.mkdir()
        (reader / "pushes.py").write_text(FUNCTION)
        monkeypatch.chdir(reader)
        yield folder.path / "data"
        assert not (reader / "marker").exists()

    def test_it_is_read(self, dataset: Path, run: Callable[..., tuple[int, str]]) -> None:
        recordings = gerd.Recordings(dataset)
        assert [x_accelerations(recording) for recording in recordings] == [[1.0, 4.0, 7.0, 10.0]] * 2
        assert np.isfinite(recordings[0].T).all()
        assert recordings[0].boxes()[0, 0].tolist() == [5.5, 5.5, 10.5, 10.5]
        assert recordings[0].masks(edges=True).any()
        assert recordings[0].flow().shape == (4, 2, 16, 16)
        assert len(recordings[0].frames()) == 4
        assert len(recordings[0].actor) == len(recordings[0])
        code, printed = run("info", dataset)
        assert code == 0
        assert (
            "function    pushes:push, of which the config has the values from t = -6 to 3: it is not needed" in printed
        )

    @pytest.mark.parametrize("trust", [[], ["--trust"]])
    def test_it_is_verified_and_made_again(
        self, trust: list[str], dataset: Path, run: Callable[..., tuple[int, str]]
    ) -> None:
        assert run("verify", dataset, "--regenerate", *trust)[0] == 0
        assert run("generate", dataset / "resolved.json", "again", "-n", "2", "--workers", "1", *trust)[0] == 0
        again, made = gerd.Recordings("again"), gerd.Recordings(dataset)
        assert again.manifest.config_digest == made.manifest.config_digest
        assert again.manifest.shards == made.manifest.shards
        assert run("generate", dataset / "resolved.json", dataset, "-n", "3", "--workers", "1", *trust)[0] == 0
        assert len(gerd.Recordings(dataset)) == 3

    def test_its_config_as_text_gives_the_same_recordings(self, dataset: Path) -> None:
        data = gerd.Recordings(dataset)
        for text in (data.config.to_yaml(), data.config.resolved_yaml(), data[1].config.to_yaml()):
            assert gerd.simulate(gerd.parse(text), 1).digest == data[1].digest


class TestCallables:
    """Code that is handed over in Python is code that the user runs already."""

    def config(self, function: Callable[[float], float]) -> Config:
        return Config(steps=3, actors=[{"shape": "square", "rotation": {"acceleration": function}}])

    def test_a_callable_is_called_with_the_time_in_steps(self) -> None:
        times: list[float] = []

        def push(t: float) -> float:
            times.append(t)
            return 5 - t

        recording = gerd.simulate(self.config(push))
        assert np.degrees(recording.parameters_acceleration["rotation"][:, 0]) == pytest.approx([5, 4, 3])
        assert times == [-6, -5, -4, -3, -2, -1, 0, 1, 2]  # from the warm-up on

    def test_a_pair_may_have_a_callable_on_one_side(self) -> None:
        actor = {"shape": "square", "translation": {"border": "free", "acceleration": [lambda t: 2.0, 0]}}
        recording = gerd.simulate(Config(steps=3, actors=[actor]))
        assert x_accelerations(recording) == [2.0] * 3
        assert (recording.parameters_acceleration["y"] == 0).all()

    @pytest.mark.parametrize("pair", [tuple, list, np.array])
    def test_that_of_a_translation_may_give_both_axes(self, pair: Callable[[Any], Any]) -> None:
        """Constant accelerations a: the path is x0 + a t²/2, by hand."""
        actor = {"shape": "square", "translation": {"border": "free", "acceleration": lambda t: pair((2.0, -0.5))}}
        path = gerd.simulate(Config(steps=4, actors=[actor])).positions[:, 0]
        t = np.arange(4.0)[:, None]
        np.testing.assert_allclose(path, path[0] + np.array([2.0, -0.5]) * t * t / 2)

    @pytest.mark.parametrize(("part", "given"), [("translation", (1, 2, 3)), ("scale", (1, 2)), ("rotation", (1, 2))])
    def test_other_tuples_are_no_accelerations(self, part: str, given: tuple[float, ...]) -> None:
        config = Config(steps=2, actors=[{"shape": "square", part: {"acceleration": lambda t: given}}])
        allowed = "gives a number or a pair" if part == "translation" else "gives a number$"
        with pytest.raises(gerd.ConfigError, match=allowed):
            gerd.simulate(config)
