"""A config's Python functions are sampled once, and their values are part of what it says."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gerd
from gerd.cli.describe import describe
from gerd.config.config import Config
from gerd.storage.verify import verify

TEXT = """
seed: 5
sensor: {width: 10, height: 8}
steps: 6
upsampling: 2
actors:
  - shape: square
    scale: {start: 4, acceleration: 0}
    translation: {start: uniform, border: free, acceleration: {function: 'wobble:push'}}
"""
SINE = "import math\ndef push(t):\n    return 0.3 * math.sin(t / 3)\n"
EDITED = SINE.replace("0.3", "0.2")
PAIRS = "def push(t):\n    return 0.01 * t, -0.5\n"


def config_in(folder: Path, code: str = SINE, text: str = TEXT, trust: bool = True) -> Config:
    """A config beside a module of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "wobble.py").write_text(code)
    (folder / "c.yaml").write_text(text)
    return gerd.load(folder / "c.yaml", trust=trust)


def faults(data: Path, trust: bool = False) -> list[str]:
    return [str(fault) for _, found in verify(data, regenerate=True, trust=trust) for fault in found]


def with_callable(function: Callable[[float], Any], **fields: Any) -> Config:
    still = {"start": 4, "acceleration": 0}
    actor = {"shape": "square", "scale": still, "translation": {"border": "free", "acceleration": function}}
    return Config(**{"sensor": {"width": 10, "height": 8}, "steps": 6, "upsampling": 2, "actors": [actor], **fields})


class TestDatasets:
    @pytest.mark.parametrize("count", [64, 70], ids=["again", "more"])
    def test_an_edited_function_is_refused(self, count: int, tmp_path: Path) -> None:
        gerd.generate(config_in(tmp_path / "first"), tmp_path / "data", 64, workers=1)
        before = {file.name: file.read_bytes() for file in (tmp_path / "data").iterdir()}
        message = (
            r"t: the function wobble:push has changed: it gave -0\.272789 at t = -6 there and gives -0\.181859 here"
        )
        with pytest.raises(gerd.StorageError, match=message):
            gerd.generate(config_in(tmp_path / "second", EDITED), tmp_path / "data", count, workers=1)
        assert {file.name: file.read_bytes() for file in (tmp_path / "data").iterdir()} == before

    def test_the_same_function_elsewhere_goes_on(self, tmp_path: Path) -> None:
        gerd.generate(config_in(tmp_path / "first"), tmp_path / "data", 3, workers=1)
        gerd.generate(config_in(tmp_path / "second", "# moved\n" + SINE), tmp_path / "data", 5, workers=1)
        assert faults(tmp_path / "data") == []
        assert len(gerd.Recordings(tmp_path / "data")) == 5

    @pytest.mark.parametrize("code", [SINE, PAIRS], ids=["numbers", "pairs"])
    @pytest.mark.parametrize(
        "more",
        [
            "",
            "integrator: {warmup: 0}",
            "time_scale: 2.7",
            "time_scale: 0.3",
            "time_scale: {factor: 0.4, keep: path}",
            "timing: exact\nstep_us: 50",
            "timing: exact\ntime_scale: 0.25\nintegrator: {warmup: 3}",
            "timing: exact\ntime_scale: {factor: 2.5, keep: path}\nnoise: {shape: 0.01}",
            "transform: [{boost: [0.1, 0]}, {time_scale: 1.9}, {time_scale: 0.7}]",
            "sweep: {time_scale: [0.5, 3], steps: [2, 9], timing: [step, exact]}",
            "transform: [{time_scale: 1}]\nsweep: {transform.0.time_scale: [0.5, 2], integrator.warmup: [0, 7]}",
            "sweep: {actors.0.translation.acceleration: [0, {function: 'wobble:push'}], time_scale: [1, 2]}",
            "sweep: {actors.0.translation.acceleration.function: ['wobble:push', 'math:cos']}",
            "sweep: {actors.0.rotation.acceleration: [{function: 'math:cos'}]}",
            "sweep: {actors.0.translation.acceleration: [0, 1]}",  # so that no member has the function
            "sweep: {actors: [[{shape: circle, rotation: {acceleration: {function: 'math:cos'}}}], []]}",
        ],
    )
    def test_it_is_made_again_without_the_code(self, code: str, more: str, tmp_path: Path) -> None:
        config = config_in(tmp_path / "code", code, TEXT + more)
        made = gerd.generate(config, tmp_path / "data", 2, workers=1)
        assert made.manifest.config_digest == config.digest
        assert faults(tmp_path / "data") == []
        again = gerd.generate(tmp_path / "data" / "resolved.json", tmp_path / "again", 2, workers=1)
        assert again.manifest.shards == made.manifest.shards
        assert again.config.digest == config.digest
        for recording, other in zip(made, again, strict=True):
            simulated = gerd.simulate(config, recording.identity.index, recording.member)
            assert recording.identity == simulated.identity == other.identity
            assert recording.truth.tobytes() == simulated.truth.tobytes() == other.truth.tobytes()
            assert recording.config.digest == simulated.config.digest
            shown = gerd.parse(recording.config.resolved_yaml())
            assert shown.functions == recording.config.sampled.functions

    def test_labels_name_functions(self, tmp_path: Path) -> None:
        path = "actors.0.translation.acceleration"
        text = f"{TEXT}sweep: {{{path}: [0, {{function: 'wobble:push'}}]}}\n"
        data = gerd.generate(config_in(tmp_path / "code", text=text), tmp_path / "data", 1, workers=1)
        assert data.at(0, {path: {"function": "wobble:push"}}).identity.labels == {path: {"function": "wobble:push"}}


class TestSampling:
    @pytest.mark.parametrize(
        ("fields", "first", "last"),
        [
            ({}, -6, 5),
            ({"integrator": {"warmup": 0}, "steps": 1}, -1, 0),
            ({"time_scale": 2.5}, -15, 12),
            ({"time_scale": {"factor": 2.0, "keep": "path"}}, -8, 6),  # 6 → 4 steps, 5 → 3 of warm-up
            ({"timing": "exact"}, -6, 6),  # one unit more
            ({"timing": "exact", "time_scale": 0.5}, -5, 3),  # the warm-up is in own time
            ({"sweep": {"time_scale": [0.5, 2.0], "steps": [3, 6]}}, -12, 10),
            ({"transform": [{"time_scale": 3}, {"mirror": "x"}]}, -18, 15),
        ],
    )
    def test_each_time_that_is_needed_is_asked_for_once(self, fields: dict[str, Any], first: int, last: int) -> None:
        """Worked out by hand: from the step before the warm-up to the last, times the time scale."""
        times: list[float] = []

        def push(t: float) -> float:
            times.append(t)
            return 0.1

        config = with_callable(push, **fields)
        for number in range(math.prod(map(len, config.sweep.values()))):
            gerd.simulate(config, 3, number)
        assert config.to_yaml() == config.to_yaml()
        assert times == list(range(first, last + 1))
        (values,) = config.resolved()["functions"].values()
        assert values == {"first": first, "values": " ".join(["0.1"] * len(times))}

    def test_a_function_of_chance_gives_one_dataset(self, tmp_path: Path) -> None:
        """What it gives later has no say."""
        chance = random.Random(1)
        config = with_callable(lambda t: chance.uniform(-1, 1))
        data = gerd.generate(config, tmp_path / "data", 66, workers=1)
        assert faults(tmp_path / "data") == []
        assert data[65].truth.tobytes() == gerd.simulate(config, 65).truth.tobytes()

    def test_it_gives_one_recording_whatever_was_simulated_since(self) -> None:
        chance = random.Random(1)
        config = with_callable(lambda t: chance.uniform(-1, 1))
        before = gerd.simulate(config)
        for steps in range(1, 1100):  # more than the configs that are remembered
            assert gerd.parse({"actors": [], "steps": steps}).sampled.functions == {}
        after = gerd.simulate(config)
        assert after.truth.tobytes() == before.truth.tobytes()
        assert after.config.digest == config.digest
        assert before.config == after.config != gerd.simulate(with_callable(lambda t: 0.1)).config

    def test_the_values_decide_the_digest_and_not_the_name(self, tmp_path: Path) -> None:
        one, other = config_in(tmp_path / "a"), config_in(tmp_path / "b", EDITED)
        assert one.digest != other.digest
        renamed = config_in(tmp_path / "c", SINE.replace("push", "pull"), TEXT.replace("push", "pull"))
        assert renamed.digest == one.digest
        given = with_callable(lambda t: 0.3 * math.sin(t / 3), seed=5)
        assert given.digest == one.model_copy(update={"actors": given.actors}).digest

    def test_functions_with_one_name_are_told_apart(self) -> None:
        def constant(value: float) -> Callable[[float], float]:
            return lambda t: value

        actor = {"shape": "square", "translation": {"acceleration": [constant(1), constant(2)], "border": "free"}}
        config = Config(steps=3, actors=[actor, {"shape": "circle", "rotation": {"acceleration": constant(3)}}])
        assert sorted(values.numbers[0] for values in config.sampled.functions.values()) == [1, 2, 3]
        again = gerd.parse(config.to_yaml())
        assert again.digest == config.digest
        assert gerd.simulate(again).truth.tobytes() == gerd.simulate(config).truth.tobytes()
        assert (gerd.simulate(again).parameters_acceleration["y"][:, 0] == 2).all()

    def test_another_callable_of_that_name_is_not_taken_for_it(self) -> None:
        made = gerd.simulate(with_callable(lambda t: 1.0)).config
        other = gerd.simulate(made, **{"actors.0.translation.acceleration": lambda t: 2.0})
        assert (other.parameters_acceleration["x"] == 2).all()

    def test_a_callable_that_is_handed_over_again_is_asked_again(self) -> None:
        """As in a notebook, where a number that it uses was changed; a config that was sampled keeps its values."""
        amount = 0.1

        def push(t: float) -> float:  # noqa: ARG001
            return amount

        before = with_callable(push)
        assert (gerd.simulate(before).parameters_acceleration["x"] == 0.1).all()
        amount = 0.2
        after = with_callable(push)
        assert (gerd.simulate(after).parameters_acceleration["x"] == 0.2).all()
        assert (gerd.simulate(after, steps=4).parameters_acceleration["x"] == 0.2).all()
        assert (gerd.simulate(before, 1).parameters_acceleration["x"] == 0.1).all()
        assert before.digest != after.digest

    def test_a_module_that_was_edited_is_read_again_with_the_config(self, tmp_path: Path) -> None:
        """In one session, and within the second that Python's cache of modules tells apart."""
        before = config_in(tmp_path)
        gerd.generate(before, tmp_path / "data", 2, workers=1)
        with pytest.raises(gerd.StorageError, match="the function wobble:push has changed: it gave "):
            gerd.generate(config_in(tmp_path, EDITED), tmp_path / "data", 4, workers=1)
        assert gerd.simulate(before, 3).config.digest == before.digest
        again = config_in(tmp_path)
        assert again.digest == before.digest
        assert gerd.simulate(again).truth.tobytes() == gerd.simulate(before).truth.tobytes()

    def test_a_module_that_was_edited_since_the_config_was_read_is_not_run(self, tmp_path: Path) -> None:
        config = config_in(tmp_path)
        (tmp_path / "wobble.py").write_text(EDITED)
        with pytest.raises(
            gerd.ConfigError, match=r"wobble\.py has changed since the config was read; read the config ag"
        ):
            gerd.simulate(config)

    def test_a_function_that_ends_the_program_is_named(self) -> None:
        with pytest.raises(gerd.ConfigError, match=r"translation\.acceleration: .*failed: SystemExit: 3"):
            gerd.simulate(with_callable(lambda t: sys.exit(3)))

    def test_pairs(self) -> None:
        config = with_callable(lambda t: (t, 0.25))
        (values,) = config.resolved()["functions"].values()
        assert values["values"].split()[5:8] == ["-1,0.25", "0,0.25", "1,0.25"]
        again = gerd.simulate(gerd.parse(config.resolved_yaml()))
        assert again.parameters_acceleration["x"][:, 0].tolist() == [0, 1, 2, 3, 4, 5]
        assert (again.parameters_acceleration["y"] == 0.25).all()

    def test_a_pair_where_a_number_is_needed_is_refused(self) -> None:
        def push(t: float) -> tuple[float, float]:
            return t, t

        actor = {"shape": "square", "translation": {"acceleration": push}, "rotation": {"acceleration": push}}
        with pytest.raises(gerd.ConfigError, match=r"rotation\.acceleration: .*a pair \(x, y\); allowed: .* a number"):
            gerd.simulate(Config(actors=[actor]))

    @pytest.mark.parametrize("value", [math.nan, math.inf, -2e9, (0, math.nan)])
    def test_what_is_no_acceleration_is_named_with_its_time(self, value: Any) -> None:
        config = with_callable(lambda t: (0, 0) if isinstance(value, tuple) and t < 2 else 0 if t < 2 else value)
        with pytest.raises(gerd.ConfigError, match=r"actors\.0\.translation\.acceleration: .* at t = 2; allowed: numb"):
            config.to_yaml()

    def test_numbers_are_exact(self) -> None:
        numbers = [0.1 + 0.2, 5e-324, -1e9, 1e-7, 123456789.12345678, 2**53 + 0.0 - 2**53 + 7, 1 / 3, -0.0]
        config = with_callable(lambda t: numbers[int(t) % 8])
        (values,) = gerd.parse(config.resolved_yaml()).functions.values()
        assert values.numbers.tobytes() == (np.array([numbers[t % 8] for t in range(-6, 6)]) + 0.0).tobytes()
        assert config.resolved()["functions"].popitem()[1]["values"].split()[:3] == [
            "-1000000000",
            "1e-07",
            "123456789.12345678",
        ]


class TestBeyondTheValues:
    def test_other_times_need_the_function(self, tmp_path: Path) -> None:
        data = gerd.generate(config_in(tmp_path / "code"), tmp_path / "data", 1, workers=1)
        message = r"is known from t = -6 to 5 only; for other times this config runs this Python function; allow that"
        with pytest.raises(gerd.TrustError, match=message):
            gerd.simulate(data.config, time_scale=2)
        assert gerd.simulate(data.config, time_scale=0.5).truth.shape == (6, 1, 3, 6)
        trusted = gerd.simulate(data.config.trusted(str(tmp_path / "code")), time_scale=2)
        wanted = gerd.simulate(config_in(tmp_path / "code"), time_scale=2)
        assert trusted.truth.tobytes() == wanted.truth.tobytes()
        assert trusted.config.digest == wanted.config.digest

    def test_an_edited_function_is_not_run_on(self, tmp_path: Path) -> None:
        data = gerd.generate(config_in(tmp_path / "code"), tmp_path / "data", 1, workers=1)
        config_in(tmp_path / "edited", EDITED)
        with pytest.raises(gerd.ConfigError, match=r"gives other values than those that the config has .*changed"):
            gerd.simulate(data.config.trusted(str(tmp_path / "edited")), time_scale=2)

    def test_endless_windows_go_on_as_long_as_the_function_may_run(self, tmp_path: Path) -> None:
        config = config_in(tmp_path / "code")
        windows = list(itertools.islice(gerd.simulate_chunks(config, chunk=4, endless=True), 5))
        longer = gerd.simulate(config, steps=20)
        assert [window.digest for window in windows] == [
            longer.window(first, first + 4).digest for first in range(0, 20, 4)
        ]
        stored = gerd.simulate_chunks(gerd.parse(config.to_yaml()), chunk=3, endless=True)
        assert [next(stored).first, next(stored).first] == [0, 3]
        with pytest.raises(gerd.TrustError, match="known from t = -6 to 5 only"):
            list(itertools.islice(stored, 1))


class TestTooLong:
    """101 000 steps of own time: more than are kept."""

    LONG = TEXT.replace("steps: 6", "steps: 95\ntime_scale: 1000")

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("long")
        gerd.generate(config_in(folder / "code", text=cls.LONG), folder / "data", 1, workers=1)
        return folder

    def test_the_dataset_is_read_and_has_a_fingerprint(self, folder: Path) -> None:
        data = gerd.Recordings(folder / "data")
        (values,) = data.config.resolved()["functions"].values()
        assert values.keys() == {"first", "count", "sha256"}
        assert (values["first"], values["count"]) == (-6000, 6000 + 94_001)
        assert data[0].boxes().shape == (95, 1, 4)

    def test_info_says_that_it_is_needed(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        describe(folder / "data")
        assert "a sha256 for t = -6000 to 94000: to make recordings again takes it" in capsys.readouterr().out

    def test_making_it_again_needs_the_function(self, folder: Path) -> None:
        message = "gives more values than are kept; to be simulated this config runs this Python function; allow that"
        with pytest.raises(gerd.TrustError, match=message):
            faults(folder / "data")

    def test_with_the_function_it_is_sound(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder / "code")
        assert faults(folder / "data", trust=True) == []

    def test_an_edited_function_is_refused(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever time its edit shows at."""
        code = SINE + "def push(t, old=push):\n    return old(t) + (t == 94_000)\n"
        changed = config_in(tmp_path / "code", code, self.LONG)
        with pytest.raises(
            gerd.StorageError, match="the function wobble:push has changed, by the sha256 of its values"
        ):
            gerd.generate(changed, folder / "data", 2, workers=1)
        monkeypatch.chdir(tmp_path / "code")
        with pytest.raises(gerd.ConfigError, match="gives other values than those that the config has of it"):
            faults(folder / "data", trust=True)


def test_a_warmup_that_is_too_long_is_refused_before_it_is_sampled() -> None:
    config = with_callable(lambda t: 0.0, transform=[{"time_scale": 1000}] * 2, integrator={"warmup": 1000})
    with pytest.raises(gerd.ConfigError, match=r"integrator\.warmup: .* accelerated steps; allowed: 5000000"):
        gerd.simulate(config)


def test_as_many_values_as_are_kept_are_read_as_text() -> None:
    config = with_callable(lambda t: t / 7, steps=99_994)
    text = config.to_yaml()
    assert len(text) < 2_500_000
    again = gerd.parse(text)
    (values,) = again.functions.values()
    assert len(values.numbers) == 100_000
    assert again.digest == config.digest


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("{first: 0, values: '1 x 3'}", "values: got '1 x 3': allowed: numbers such as '0 0.5 -1e-3', or pairs"),
        ("{first: 0, values: '1 2,3'}", "or pairs such as"),
        ("{first: 0, values: '1 nan'}", "allowed: numbers such as"),
        ("{first: 0, values: ''}", "allowed: numbers such as"),
        ("{first: 0, values: '1 2e9'}", "within ±1e\\+09"),
        (f"{{first: 0, values: '{'1' * 400}'}}", "allowed: numbers such as"),
        ("{first: 0, values: 7}", "allowed: text in quotes"),
        ("{first: 0.5, values: '7'}", "first: got 0.5: allowed: a whole number"),
        ("{values: '7'}", "first: "),
        ("{first: 0, count: 3, sha256: abc}", "sha256"),
        ("7", "allowed: {first: 0, values: '0 0.5 1'}"),
    ],
)
def test_values_that_are_none_are_refused(values: str, message: str) -> None:
    with pytest.raises(gerd.ConfigError, match=message):
        gerd.parse(f"actors: [{{shape: square}}]\nfunctions: {{'a:b': {values}}}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("1 " * 1_000_000 + "x", "allowed: numbers such as"),
        ("1 " * 2_000_000, "allowed: at most 2500000 characters"),
    ],
)
def test_many_values_are_checked_in_one_go(values: str, message: str) -> None:
    with pytest.raises(gerd.ConfigError, match=message):
        gerd.parse({"actors": [{"shape": "square"}], "functions": {"a:b": {"first": 0, "values": values}}})


def test_values_are_not_swept() -> None:
    with pytest.raises(gerd.ConfigError, match="no such field"):
        gerd.parse("actors: []\nfunctions: {'a:b': {first: 0, values: '1'}}\nsweep: {functions: [{}]}")


def test_values_beyond_what_is_needed_do_not_count() -> None:
    """Nor do those of a function that no actor has."""
    text = "steps: 2\nintegrator: {warmup: 0}\nactors: [{shape: square, rotation: {acceleration: {function: 'a:b'}}}]\n"
    needed = gerd.parse(text + "functions: {'a:b': {first: -1, values: 1 2 3}}")
    more = gerd.parse(text + "functions: {'a:b': {first: -3, values: 8 9 1.0 2 3 7 7}, 'c:d': {first: 0, values: '4'}}")
    assert needed.digest == more.digest
    assert needed.resolved() == more.resolved()
    assert gerd.simulate(more).digest == gerd.simulate(needed).digest
