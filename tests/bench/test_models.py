"""Networks of a user's: what is refused at once and in which words; what they cost; by what their weights are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from gerd import bench
from gerd.bench.examples import Examples, examples_of
from gerd.bench.models import answer, candidate, cost, load_checkpoint, weights_digest
from gerd.bench.symmetry import check_layer, lie_results
from gerd.bench.training import BATCH, UPDATES, Material, errors, recipe, train
from gerd.errors import GerdError
from gerd.measures.lie import lie_derivative


def first(task: str, count: int = 2) -> Examples:
    (found,) = examples_of([bench.split(task, "test", quick=True)], "cpu", count)
    return found


class Convolution(torch.nn.Module):
    """One convolution and two numbers for each step."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.nn.Conv2d(2, 3, 5, padding=2)
        self.read = torch.nn.Linear(3, 2)

    def forward(self, frames: Tensor) -> Tensor:
        maps = self.seen(frames.flatten(0, 1)).mean((-1, -2))
        answer: Tensor = self.read(maps).unflatten(0, frames.shape[:2])
        return answer


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        ("locate", lambda x: x.sum((-1, -2, -3)), "the answer has the shape (2, 49); allowed: (recordings, steps, 2)"),
        ("locate", lambda x: [1, 2], "the model gave [1, 2]; allowed for locate: a tensor (recordings, steps, 2)"),
        ("locate", lambda x: x.nonsense, "the model failed on frames of shape (2, 49, 2, 64, 64): AttributeError"),
        ("locate", lambda x: torch.full((2, 49, 2), float("nan")), "numbers that are not finite"),
        ("flow", lambda x: x["p"], "allowed: (events, 2)"),
        ("flow", lambda x: x["polarity"], "events of 2 recordings: KeyError"),
    ],
)
def test_answers_that_are_none(task: str, model: Any, message: str) -> None:
    with pytest.raises(GerdError) as error:
        answer(model, first(task), bench.task(task))
    assert message in str(error.value)


def test_a_network_gets_what_was_promised() -> None:
    seen: list[Any] = []

    def frames(x: Tensor) -> Tensor:
        seen.append(x)
        return torch.zeros(len(x), x.shape[1], 2)

    answer(frames, first("locate"), bench.task("locate"))
    assert seen[0].dtype == torch.float32
    assert seen[0].shape == (2, 49, 2, 64, 64)
    assert set(seen[0].unique().tolist()) == {0, 1}

    def events(x: dict[str, Tensor]) -> Tensor:
        seen.append(x)
        return torch.zeros(len(x["t"]))

    answer(events, first("noise"), bench.task("noise"))
    assert set(seen[1]) == {"x", "y", "t", "p", "offsets"}
    assert seen[1]["offsets"][-1] == len(seen[1]["x"])


def test_weights_are_known_by_what_they_are_and_not_by_their_file(tmp_path: Path) -> None:
    network = Convolution()
    torch.save({"model": network.state_dict()}, tmp_path / "a.pt")
    save_file(network.state_dict(), tmp_path / "b.safetensors")
    for file in ("a.pt", "b.safetensors"):
        other = Convolution()
        assert weights_digest(other) != weights_digest(network)
        load_checkpoint(other, "mine:build", tmp_path / file)
        assert weights_digest(other) == weights_digest(network)
    with torch.no_grad():
        network.read.bias[1] += 1e-6
    assert weights_digest(other) != weights_digest(network)
    with pytest.raises(GerdError, match="mine:build is not a torch module, and has no weights"):
        load_checkpoint(lambda x: x, "mine:build", tmp_path / "a.pt")


def test_what_a_network_takes() -> None:
    spent = cost(Convolution(), first("locate", 4), bench.task("locate"), "cpu")
    assert spent.parameters == 3 * 2 * 25 + 3 + 3 * 2 + 2
    assert spent.operations == 49 * 2 * (64 * 64 * 3 * 2 * 25 + 3 * 2)  # products and sums of one recording
    assert spent.seconds > 0
    assert (spent.batch, spent.steps) == (4, 49)


def test_seeds_are_different_networks_and_the_global_generator_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 2)\n")
    monkeypatch.chdir(tmp_path)
    before = torch.get_rng_state()
    kind = candidate("of_mine:build", bench.task("locate"))
    digests = [weights_digest(kind.build(seed)) for seed in (0, 1, 0)]
    assert digests[0] == digests[2] != digests[1]
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(GerdError, match="did you mean relu-1"):
        candidate("relu1", bench.task("locate"))
    with pytest.raises(GerdError, match="allowed for flow: constant, relu-1, relu-8, li, lif, conv-gru"):
        candidate("bank-time", bench.task("flow"))


def test_all_networks_get_as_many_updates() -> None:
    """However the recordings are divided by their lengths, as nearly as whole passes allow."""

    def parts(*counts: int) -> list[Examples]:
        return [Examples(torch.zeros(count, 1), torch.zeros(count, 1), 0, 1, 1000) for count in counts]

    for counts in ((2000,), (1840, 40, 40, 40, 40), (400,)):
        in_a_pass = sum(-(-count // BATCH) for count in counts)
        for quick, updates in UPDATES.items():
            assert abs(recipe(parts(*counts), quick).epochs * in_a_pass - updates) <= in_a_pass / 2


def test_local_equivariance_errors_are_those_of_the_measure() -> None:
    """Of the answer, and of the maps of a layer; of what says the same of everything there is nothing to say."""
    network, task, neutral = Convolution(), bench.task("locate"), bench.split("locate", "test", quick=True)
    found = lie_results(network, task, neutral, 6, "cpu")
    assert [each.generator for each in found] == [
        "translation", "rotation", "scale", "shear", "velocity", "time_scale"
    ]  # fmt: skip
    again = lie_derivative(network, neutral.config, "rotation", count=6, first_step=16)
    assert found[1].absolute.value == pytest.approx(again.absolute.value, abs=1e-6)
    maps = lie_results(network, task, neutral, 6, "cpu", "seen")
    assert {each.layer for each in maps} == {"seen"}
    assert lie_results(network, bench.task("flow"), bench.split("flow", "test"), 6, "cpu") == ()
    constant = lie_results(lambda x: torch.ones(*x.shape[:2], 2), task, neutral, 6, "cpu")
    assert all(each.why_nothing == "the model says the same of every recording" for each in constant)


@pytest.mark.parametrize(
    ("task", "layer", "message"),
    [
        ("locate", "read", "gives the shape (2, 49, 2); allowed: maps (recordings, steps, …, rows, columns)"),
        ("locate", "sen", "did you mean seen?"),
        ("flow", "seen", "flow has no local equivariance error: answers to single events have none"),
    ],
)
def test_layers_of_which_nothing_is_known(task: str, layer: str, message: str) -> None:
    with pytest.raises(GerdError) as error:
        check_layer(Convolution(), bench.task(task), layer, first("locate").inputs)
    assert message in str(error.value)


class Watching(Convolution):
    """Notes in which mode it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[bool] = []

    def forward(self, frames: Tensor) -> Tensor:
        self.modes.append(self.training)
        return super().forward(frames)


def test_a_network_is_trained_in_its_training_mode_and_validated_in_the_other(tmp_path: Path) -> None:
    network = Watching().eval()
    some = [first("locate")]

    def stop(line: str) -> None:
        assert "epoch 1/" in line
        raise KeyboardInterrupt

    task = bench.task("locate")
    kind = candidate("relu-1", task)
    with pytest.raises(KeyboardInterrupt):
        train(network, kind, task, Material(some, some), 0, tmp_path / "weights.pt", quick=True, say=stop)
    assert network.modes == [True, False]
    with pytest.raises(GerdError, match="relu-1 has no weights to be trained; leave --train out"):
        train(lambda frames: frames, kind, task, Material(some, some), 0, tmp_path / "none.pt")


def test_recordings_of_all_inner_amounts_are_learnt_from_and_no_batch_mixes_lengths() -> None:
    """The time scale alone changes how long a recording is."""
    task = bench.task("locate")
    chosen = [each for each in bench.splits("locate", True, "inner") if each.kind == "validate"]
    parts = examples_of(chosen, "cpu")
    assert sum(map(len, parts)) == sum(each.count for each in chosen) == 100
    lengths = {each.steps for each in chosen}
    assert len(lengths) == 5
    assert {part.steps for part in parts} == lengths
    assert all(part.inputs.shape[1] == part.steps for part in parts)
    network = torch.nn.Sequential(torch.nn.Flatten(2), torch.nn.Linear(2 * 64 * 64, 2))
    found = [errors(network, task, part) for part in parts]
    assert [len(each) for each in found] == [len(part) for part in parts]
