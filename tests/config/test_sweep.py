"""Families: how members are numbered and named, and that they differ in what is swept and in nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gerd
from gerd.config.config import Config, Origin
from gerd.config.sweep import labels, member_count, relatives, with_values

ACTOR = "{shape: square, translation: {start: uniform, acceleration: 0}, scale: {start: 5, acceleration: 0}}"


def family(sweep: str = "{}", actor: str = ACTOR) -> Config:
    return gerd.parse(f"steps: 4\nsensor: {{width: 24, height: 20}}\nactors: [{actor}]\nsweep: {sweep}\n")


def push(_: float) -> float:
    return 2.0


class TestNumbering:
    def test_without_a_sweep_there_is_one_member(self) -> None:
        assert member_count(family()) == 1
        assert labels(family(), 0) == {}

    def test_the_last_path_is_the_fastest(self) -> None:
        config = family("{time_scale: [0.5, 2], upsampling: [1, 2, 4], noise.event: [0, 0.5]}")
        assert member_count(config) == 12
        assert [tuple(labels(config, member).values()) for member in range(12)] == list(
            itertools.product([0.5, 2], [1, 2, 4], [0, 0.5])
        )
        assert list(labels(config, 7)) == ["time_scale", "upsampling", "noise.event"]

    def test_a_resolved_config_numbers_its_members_in_the_same_way(self) -> None:
        config = family("{upsampling: [1, 2], time_scale: [1, 3], noise.event: [0.5]}")
        for again in (gerd.parse(config.resolved_yaml()), Config.model_validate(config.resolved())):
            for member in range(4):
                assert list(labels(again, member).items()) == list(labels(config, member).items())

    def test_labels_are_plain_data(self) -> None:
        config = family("{actors.0.scale.start: [3, [4.5, 5], {uniform: [2, 3.5]}, uniform]}")
        found = [labels(config, member)["actors.0.scale.start"] for member in range(4)]
        assert found == [3, [4.5, 5], {"uniform": [2, 3.5]}, "uniform"]


class TestWithValues:
    def test_what_is_named_changes_and_nothing_else(self) -> None:
        config = family("{time_scale: [1, 2]}")
        before, after = config.resolved(), with_values(config, {"noise.event": 0.5, "actors.0.intensity": 2}).resolved()
        assert after["noise"].pop("event") == 0.5
        assert after["actors"][0].pop("intensity") == 2.0
        assert after.pop("sweep") == {}
        del before["noise"]["event"], before["actors"][0]["intensity"], before["sweep"]
        assert after == before

    @pytest.mark.parametrize(
        ("path", "value", "field", "expected"),
        [
            ("sensor", {"width": 30}, "sensor", {"width": 30, "height": 128}),
            ("actors.0.scale.start", [3, 4], "actors.0.scale.start", [3.0, 4.0]),
            ("actors.0.shape", {"text": "l"}, "actors.0.shape.polygon.0.0.1", -0.5),
            ("actors.0", {"shape": "circle", "intensity": 3}, "actors.0.intensity", 3.0),
            ("actors", [{"shape": "circle"}, {"shape": "square"}], "actors.1.shape", "square"),
        ],
    )
    def test_any_part_of_a_config_can_be_replaced(self, path: str, value: Any, field: str, expected: Any) -> None:
        found = with_values(family(), {path: value}).resolved()
        for word in field.split("."):
            found = found[int(word) if isinstance(found, list) else word]
        assert found == expected

    def test_one_side_of_a_pair_can_be_replaced(self) -> None:
        config = with_values(family(), {"actors.0.scale.start": [3, 4]})
        assert with_values(config, {"actors.0.scale.start.1": 7}).actors[0].scale.start == (3.0, 7.0)

    def test_what_is_below_a_form_can_be_replaced(self) -> None:
        config = with_values(family(), {"actors.0.scale.velocity": {"factor": 0.9}})
        assert with_values(config, {"actors.0.scale.velocity.factor": 0.5}).actors[0].scale.velocity.factor == 0.5

    def test_a_callable_is_kept_and_called(self) -> None:
        config = Config(steps=4, actors=[{"shape": "square", "rotation": {"acceleration": push}}])
        faster = with_values(config, {"time_scale": 3})
        accelerations = gerd.simulate(faster).parameters_acceleration["rotation"]
        assert np.degrees(accelerations) == pytest.approx(2.0 * 3**2)

    def test_a_callable_can_be_the_value(self) -> None:
        recording = gerd.simulate(family(), **{"actors.0.rotation.acceleration": push})
        assert np.degrees(recording.parameters_acceleration["rotation"]) == pytest.approx(2.0)

    def test_trust_is_kept(self) -> None:
        text = "actors: [{shape: square, rotation: {acceleration: {function: 'operator:neg'}}}]"
        trusted = with_values(gerd.parse(text, trust=True), {"steps": 3})
        assert np.degrees(gerd.simulate(trusted).parameters_acceleration["rotation"][:, 0]) == pytest.approx(
            [0, -1, -2]
        )
        with pytest.raises(gerd.TrustError):
            gerd.simulate(with_values(gerd.parse(text), {"steps": 3}))

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            (
                "time_skale",
                "time_skale: no such field; did you mean time_scale? allowed in the config: seed, sensor, camera",
            ),
            ("actors.0.rotate.start", "did you mean rotation? allowed in actors.0: shape, intensity, translation"),
            ("actors.1", "no such field; allowed in actors: 0"),
            ("actors.-1", "no such field; allowed in actors: 0"),
            ("actors.00", "no such field; allowed in actors: 0"),
            ("actors.0.translation.start.0", "allowed in actors.0.translation.start: nothing below it"),
            ("sweep", "sweep: no such field; allowed in the config: seed, sensor"),
            ("functions", "functions: no such field; allowed in the config: seed, sensor"),
            ("", "no such field; allowed in the config: seed, sensor"),
            ("actors.", "no such field; allowed in actors: 0"),
        ],
    )
    def test_an_unknown_path_is_refused(self, path: str, message: str) -> None:
        with pytest.raises(gerd.ConfigError) as refused:
            with_values(family(), {path: 1}, "here")
        assert str(refused.value).startswith("here: ")
        assert message in str(refused.value)

    def test_a_bad_value_is_refused_by_its_path(self) -> None:
        with pytest.raises(
            gerd.ConfigError, match=r"^here: actors\.0\.scale\.start\.uniform: got \[3\.0, 2\.0\]: allowed: \[low"
        ):
            with_values(family(), {"actors.0.scale.start": {"uniform": [3, 2]}}, "here")


class TestRelatives:
    """The members that a natural position must suit."""

    @pytest.mark.parametrize(
        "sweep",
        [
            "{}",
            "{time_scale: [1, 2]}",
            "{noise.event: [0, 0.5], steps: [3, 4]}",
            "{actors.0.translation.velocity: [0, 1]}",
            "{actors.0.rotation.acceleration: [0, 1], actors.0.intensity: [1, 2], actors.0.scale.speed_limit: [1, 2]}",
        ],
    )
    def test_what_leaves_the_first_frame_as_it_is_makes_none(self, sweep: str) -> None:
        assert relatives(family(sweep)) == []

    def test_a_start_that_is_given_makes_none(self) -> None:
        assert relatives(family("{actors.0.scale.start: [3, 9]}", "{shape: square}")) == []

    def test_there_is_one_for_each_form(self) -> None:
        config = family("{actors.0.scale.start: [3, 9], time_scale: [1, 2], actors.0.rotation.start: [0, 45]}")
        found = [(member.actors[0].scale.start, member.actors[0].rotation.start) for member in relatives(config)]
        assert found == [(3.0, 0.0), (3.0, 45.0), (9.0, 0.0), (9.0, 45.0)]
        assert all(member.sweep == {} for member in relatives(config))

    def test_so_members_share_their_position_and_lie_inside_the_frame(self) -> None:
        config = family("{actors.0.scale.start: [3, 9, 13], actors.0.rotation.start: [0, 45]}")
        for index in range(5):
            members = [gerd.simulate(config, index, **labels(config, member)) for member in range(6)]
            places = np.array([member.positions[0, 0] for member in members])
            assert (places == places[0]).all()
            left, top, right, bottom = np.array([member.boxes()[0, 0] for member in members]).T
            assert min(left.min(), top.min()) >= -1e-9
            assert right.max() <= 24 + 1e-9
            assert bottom.max() <= 20 + 1e-9
            assert members[0].positions[0, 0].tolist() != gerd.simulate(config, index + 1, 0).positions[0, 0].tolist()


class TestInPython:
    """A sweep given in Python is checked like one from text."""

    def test_values_may_be_of_numpy(self) -> None:
        config = Config(actors=[], sweep={"time_scale": list(np.array([0.5, 2.0]))})
        assert config.sweep == {"time_scale": (0.5, 2)}
        assert type(config.sweep["time_scale"][0]) is float

    @pytest.mark.parametrize("value", [push, [push, 0]])
    def test_a_function_cannot_be_swept(self, value: Any) -> None:
        path = "actors.0.translation.acceleration"
        with pytest.raises(gerd.ConfigError, match="a Python function cannot be swept"):
            Config(actors=[{"shape": "square"}], sweep={path: [0, value]})

    def test_a_bad_path_is_refused(self) -> None:
        with pytest.raises(gerd.ConfigError, match="did you mean time_scale"):
            Config(actors=[], sweep={"timescale": [1]})


def test_the_order_of_swept_paths_counts() -> None:
    """It numbers the members, so two orders are two datasets."""
    text = "actors: [{{shape: square}}]\nsweep: {{{0}: [1, 2], {1}: [3, 4]}}\n"
    one, other = (gerd.parse(text.format(*paths)) for paths in (("steps", "upsampling"), ("upsampling", "steps")))
    assert one.digest != other.digest


def test_members_with_other_shapes_start_at_the_same_place() -> None:
    """The natural range of positions is one that suits the frame and the shape of every member."""
    made = gerd.parse(
        "actors: [{shape: square, translation: {start: uniform}, rotation: {start: 30}, scale: {start: 40}}]\n"
        "sweep: {'actors.0.shape': [square, circle], sensor.width: [60, 128]}\n"
    )
    starts = [gerd.simulate(made, 5, steps=1, **labels(made, k)).positions[0, 0].tolist() for k in range(4)]
    assert starts == [starts[0]] * 4
    assert 20 < starts[0][0] < 40


class TestTheConfigOfARecordingIsItsMembers:
    """Not that of the family, in which the swept fields have a value that no recording has."""

    def test_wherever_the_recording_comes_from(self, tmp_path: Any) -> None:
        config = family("{time_scale: [0.5, 2], sensor.width: [24, 30]}")
        gerd.generate(config, tmp_path / "data", 1, workers=1)
        stored = gerd.Recordings(tmp_path / "data")
        for number in range(4):
            simulated = gerd.simulate(config, **labels(config, number))
            for recording in (simulated, stored[number], stored.window(number, 1, 3), simulated.window(1)):
                assert not recording.config.sweep
                assert recording.config.time_scale == labels(config, number)["time_scale"]
                assert recording.config.sensor.width == recording.width == labels(config, number)["sensor.width"]
                assert recording.identity.config_digest == config.digest
        read = [label for _, label in gerd.Dataset(tmp_path / "data", label=lambda part: part.config.time_scale)]
        assert read == [0.5, 0.5, 2, 2]
        batch = gerd.Stream(config, 1, label=lambda part: part.config.time_scale).batch(3)
        assert batch[1].tolist() == [2]

    def test_it_makes_the_recording_again(self, tmp_path: Any) -> None:
        """Also where natural positions depend on what is swept, so that members share them."""
        config = family("{actors.0.scale.start: [3, 12], time_scale: [1, 2]}")
        gerd.generate(config, tmp_path / "data", 2, workers=1)
        for recording in gerd.Recordings(tmp_path / "data"):
            again = gerd.simulate(recording.config, recording.identity.index)
            assert again.digest == recording.digest
            assert again.identity == recording.identity
            assert np.array_equal(again.truth, recording.truth)
        starts = {recording.positions[0, 0].tobytes() for recording in gerd.Recordings(tmp_path / "data")[:4]}
        assert len(starts) == 1

    def test_it_is_checked_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many questions about the ground truth of a recording and of its windows are asked."""
        checks = []
        of = Config.of
        monkeypatch.setattr(Config, "of", lambda *given: checks.append(1) or of(*given))
        recording = gerd.simulate(family("{time_scale: [0.5, 2]}"), time_scale=2.0)
        checks.clear()
        for part in (recording, recording.window(1), recording.window(2)):
            part.boxes(), part.outlines(0), part.masks(), part.flow(), part.visibility(), part.scene, part.intensities
        assert len(checks) == 0


class TestAPathIsKept:
    """`time_scale: {factor: …, keep: path}`: the same path in more or fewer steps."""

    KEPT = (
        "steps: 30\nsensor: {width: 24, height: 20}\ntime_scale: {factor: 1, keep: path}\nintegrator: {warmup: 5}\n"
        "noise: {background: 0.01, shape: 0.02, event: 0.4}\n"
        "actors: [{shape: square, translation: {start: [4, 8], velocity: [0.5, 0.2]}, scale: {start: 6}}]\n"
    )
    FACTORS = (0.25, 0.7, 1, 2.8, 4)

    def members(self, rest: str = "") -> list[Any]:
        config = gerd.parse(f"{self.KEPT}{rest}sweep: {{time_scale.factor: [{', '.join(map(str, self.FACTORS))}]}}\n")
        return [gerd.simulate(config, 3, **labels(config, k)) for k in range(len(self.FACTORS))]

    def test_length_and_warmup_are_divided_and_noise_per_step_is_multiplied(self) -> None:
        members = self.members()
        assert [recording.steps for recording in members] == [117, 43, 30, 12, 9]  # 29 steps of time, rounded up
        assert [recording.scene.warmup for recording in members] == [20, 8, 5, 2, 2]
        for factor, recording in zip(self.FACTORS, members, strict=True):
            assert recording.scene.pixel.background == pytest.approx(0.01 * factor)
            assert recording.scene.pixel.shape_noise == pytest.approx(0.02 * factor)
            assert recording.scene.pixel.event_noise == 0.4

    def test_the_config_of_a_recording_holds_its_own_numbers(self) -> None:
        for factor, recording in zip(self.FACTORS, self.members(), strict=True):
            assert recording.config.steps == recording.steps == recording.scene.steps
            assert recording.config.time_scale == recording.scene.trajectory.rate == factor
            assert recording.config.integrator.warmup == recording.scene.warmup
            assert recording.config.family.steps == recording.config.origin.path.steps == 30
            assert recording.identity.labels == {"time_scale.factor": factor}
            again = gerd.simulate(recording.config, 3)
            assert (again.digest, again.identity) == (recording.digest, recording.identity)

    def test_all_scales_see_the_same_path(self) -> None:
        slow, _, own, _, fast = self.members()
        assert np.array_equal(slow.T[::4], own.T)
        assert np.array_equal(own.T[::4], fast.T[:8])

    def test_a_sweep_of_the_whole_field_gives_the_same_recordings(self) -> None:
        whole = ", ".join(f"{{factor: {factor}, keep: path}}" for factor in self.FACTORS)
        config = gerd.parse(f"{self.KEPT}sweep: {{time_scale: [{whole}]}}\n")
        for k, recording in enumerate(self.members()):
            assert gerd.simulate(config, 3, **labels(config, k)).digest == recording.digest

    def test_keep_steps_is_the_plain_number(self) -> None:
        plain, written = (
            gerd.parse(self.KEPT.replace("{factor: 1, keep: path}", scale))
            for scale in ("2", "{factor: 2, keep: steps}")
        )
        assert plain.digest == written.digest
        assert gerd.simulate(plain).digest == gerd.simulate(written).digest
        assert gerd.simulate(written).config.time_scale == 2

    def test_datasets_and_batches_take_members_of_different_lengths(self, tmp_path: Any) -> None:
        text = self.KEPT.replace("steps: 30", "steps: 31")
        config = gerd.parse(f"{text}sweep: {{time_scale.factor: [0.5, 1, 2]}}\n")
        gerd.generate(config, tmp_path / "data", 2, workers=1)
        stored = gerd.Recordings(tmp_path / "data")
        assert [recording.steps for recording in stored] == [61, 31, 16] * 2
        assert [recording.config.steps for recording in stored] == [61, 31, 16] * 2
        assert [faults for _, faults in gerd.verify(tmp_path / "data", regenerate=True) if faults] == []
        windows = gerd.Dataset(tmp_path / "data", steps=15)
        assert len(windows) == 2 * (5 + 3 + 2)  # the last of each overlaps
        assert {tuple(frames.shape) for frames, _ in windows} == {(15, 2, 20, 24)}
        train, test = windows.hold_out(lambda r: r.config.time_scale != 1)
        assert (len(train), len(test)) == (6, 14)
        assert gerd.Stream(config, 6, steps=15).batch(0)[0].shape == (6, 15, 2, 20, 24)
        with pytest.raises(gerd.GerdError, match="do not fit into one batch"):
            gerd.Stream(config, 6).batch(0)


class TestAConfigIsFrozen:
    def test_no_field_and_no_origin_can_be_set(self) -> None:
        config = family()
        with pytest.raises(gerd.GerdError, match="cannot be changed"):
            config.steps = 5
        with pytest.raises(ValueError, match="frozen"):
            config.origin = Origin(trust="/somewhere")  # type: ignore[misc]

    def test_trust_is_that_of_a_copy(self) -> None:
        config = family()
        assert config.origin.trust is None
        assert config.trusted("/somewhere").origin.trust == "/somewhere"
        assert config.origin.trust is None
        assert config.trusted("/somewhere").digest == config.digest
