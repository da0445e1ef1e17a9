"""A whole run of the benchmark: it goes on where it was stopped, its results can be checked, and its page says them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import make_leaderboard
import pytest
import torch
from support.processes import run_here

from gerd import bench
from gerd.bench.checking import check
from gerd.bench.digests import expected_digest
from gerd.bench.report import write_page
from gerd.bench.results import BenchResult, Number, SplitUsed, read_result, write_result
from gerd.bench.running import Wish, run
from gerd.errors import GerdError

WISH = Wish("locate", "constant", quick=True, training=True, command="gerd bench run --model constant --quick")


class StoppedError(Exception):
    """What a user's Ctrl-C stands for here."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped in its training, and in its test."""
    out = tmp_path_factory.mktemp("constant")
    said: list[list[str]] = []

    def until(word: str) -> Callable[[str], None]:
        said.append([])

        def say(line: str) -> None:
            said[-1].append(line)
            if word and word in line:
                raise StoppedError

        return say

    for word in ("epoch 3/20", "testing on test/scale/2", ""):
        try:
            run(WISH, out, say=until(word))
        except StoppedError:
            assert word
    again = [[line for line in lines if "making" not in line] for lines in said]
    assert "epoch 1/20" in again[0][0]
    assert "epoch 4/20" in again[1][0]  # and not from the beginning
    assert again[2][0].endswith("testing on test/scale/2")  # nothing that is finished is done again
    write_page(read_result(out / "results.json"), out)
    return out


@pytest.fixture
def result(folder: Path) -> BenchResult:
    return read_result(folder / "results.json")


def test_a_constant_is_at_chance_everywhere_and_never_invariant(result: BenchResult) -> None:
    assert [each.factor for each in result.factors] == [each.name for each in bench.factors()]
    assert {each.verdict for each in result.factors} == {"at chance"}
    assert all(each.at_chance == each.amounts for each in result.factors)
    assert result.factor("rotation").ratio.value == pytest.approx(1, abs=1e-3)  # however flat it is
    assert result.is_at_chance
    assert all(each.why_nothing for each in result.seeds[0].lie)


def test_what_the_file_has(result: BenchResult, folder: Path) -> None:
    assert (result.benchmark, result.quick, result.task, result.regime) == ("gerd-bench-1", True, "locate", "one")
    assert (result.model, result.unit, result.cost.parameters) == ("constant", "px", 2)
    used = {each.name: each for each in result.splits}
    for split in bench.splits("locate", True):
        assert used[split.name] == SplitUsed(split.name, split.config.digest, expected_digest(split), split.count)
    assert result.transformation_error is None
    assert "full size only" in str(result.why_no_transformation_error)
    assert len(result.seeds[0].validation) == 20
    json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)  # no NaN, which others cannot read


def test_the_page_says_what_was_found(folder: Path) -> None:
    page = (folder / "page.html").read_text()
    for words in ("Quick:", "At chance:", "At chance: every factor", "the model says the same of every recording",
                  "What a network has seen in its training cannot be told from its answers"):  # fmt: skip
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")
    assert "data:image/svg+xml;base64," in page


def test_the_same_command_makes_the_same_file_and_another_one_is_refused(folder: Path) -> None:
    before = (folder / "results.json").read_bytes()
    run(WISH, folder, say=pytest.fail)  # there is nothing to do
    assert (folder / "results.json").read_bytes() == before
    with pytest.raises(GerdError, match="was begun with model = 'constant', and this is 'relu-1'"):
        run(replace(WISH, model="relu-1"), folder)


def test_results_are_checked_and_computed_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = str(folder / "runs" / "seed-0.pt")
    assert run_here("bench", "check", str(folder / "results.json"), "--checkpoint", weights, "--seed", "1") == 0
    said = capsys.readouterr().out
    assert "its numbers agree, and its 25 splits are those of the benchmark" in said
    assert said.count("made again, with the same sha256, error and chance") == 3
    assert "--seed 1 chooses the same ones" in said


def changed(result: BenchResult, folder: Path, **values: Any) -> Path:
    file = folder / "changed.json"
    write_result(replace(result, **values), file)
    return file


def rotation(result: BenchResult, **values: Any) -> dict[str, Any]:
    """The results with something else in the factor rotation."""
    return {"factors": tuple(replace(e, **values) if e.factor == "rotation" else e for e in result.factors)}


def test_wrong_results_are_refused_with_a_sentence(result: BenchResult, tmp_path: Path) -> None:
    found = result.factor("rotation")
    first, *others = result.splits
    half = tuple(
        replace(each, value=each.value / 2, interval=(each.value / 2, each.value / 2)) for each in found.errors
    )
    other = (-130.0, 0.0, 135.0)
    lies: list[tuple[dict[str, Any], str]] = [
        ({"splits": (replace(first, sha256="0" * 64), *others)}, "splits.train-one: its recordings are others"),
        ({"splits": (replace(first, config="0" * 64), *others)}, "splits.train-one: its config is another one"),
        ({"splits": (replace(first, count=7), *others)}, "splits.train-one: has 7 recordings; allowed: 400"),
        ({"splits": result.splits[:-1]}, "splits: test/leak/32 is missing"),
        ({"splits": (*result.splits, replace(first, name="test/luck/3"))}, "test/luck/3 is not of the benchmark"),
        ({"benchmark": "gerd-bench-2"}, "benchmark 'gerd-bench-2': allowed: gerd-bench-1"),
        ({"factors": result.factors[1:]}, "factors: allowed: translation, rotation"),
        ({"seeds": ()}, "seeds: are none"),
        ({"chance": math.inf}, "chance: is inf; allowed: a finite number"),
        (rotation(result, errors=half), "and the mean of the seeds is 7.3"),
        (rotation(result, of_seeds=(half,), errors=half), "at the neutral amount it is another number"),
        (rotation(result, ratio=replace(found.ratio, value=1.9)), "factors.rotation.ratio: is 1.9"),
        (rotation(result, errors=found.errors[1:]), "factors.rotation.errors: has 2 numbers"),
        (rotation(result, errors=(Number(-1.0, (0, 1), 50), *found.errors[1:])), "is -1 (0 to 1); allowed: an error"),
        (rotation(result, errors=(Number(9.0, (1, 2), 50), *found.errors[1:])), "outside of its own interval"),
        (rotation(result, amounts=other, at_chance=other), "has the amounts -130, 0, 135; allowed: -135, 0, 135"),
        (rotation(result, verdict="invariant"), "verdict: is invariant, and the numbers say at chance"),
    ]  # fmt: skip
    for values, sentence in lies:
        with pytest.raises(GerdError) as error:
            check(changed(result, tmp_path, **values))
        assert sentence in str(error.value), values
    for text in ("{", "{}", "[]", '{"benchmark": 3}'):
        (tmp_path / "broken.json").write_text(text)
        with pytest.raises(GerdError, match=r"broken.json: (cannot be read|is not what this version of gerd writes)"):
            check(tmp_path / "broken.json")


def test_numbers_that_do_not_come_again_are_refused(result: BenchResult, folder: Path, tmp_path: Path) -> None:
    """A file that agrees with itself, whose errors are a tenth smaller than they were."""

    def less(number: Number) -> Number:
        low, high = number.interval
        return Number(0.9 * number.value, (0.9 * low, 0.9 * high), number.count)

    factors = tuple(
        replace(each, errors=tuple(map(less, each.errors)), of_seeds=tuple(tuple(map(less, s)) for s in each.of_seeds))
        for each in result.factors
    )
    file = changed(result, tmp_path, factors=factors, neutral=less(result.neutral))
    check(file, say=lambda _: None)  # which nobody can see without the weights
    weights = folder / "runs" / "seed-0.pt"
    with pytest.raises(GerdError, match=r"the error is said to be .*, and computed again it is"):
        check(file, weights, part=1, say=lambda _: None)
    state = torch.load(weights, weights_only=True)["network"]
    torch.save({name: value + 1 for name, value in state.items()}, tmp_path / "other.pt")
    with pytest.raises(GerdError, match="the results are of other weights"):
        check(folder / "results.json", tmp_path / "other.pt", say=lambda _: None)


def full_size(result: BenchResult, model: str, error: float) -> BenchResult:
    """Made-up results at full size: flat, or at chance."""
    number = Number(error, (0.9 * error, 1.1 * error), 200)
    chance = 7.5
    verdict: Any = "invariant" if error < 0.7 * chance else "at chance"
    factors = []
    for factor in bench.factors():
        same = (number,) * len(factor.amounts)
        found = replace(
            result.factors[0], factor=factor.name, unit=factor.unit, neutral=factor.neutral, amounts=factor.amounts,
            errors=same, of_seeds=(same,), chance=(chance,) * len(same), ratio=Number(1.0, (1.0, 1.1), 200),
            verdict=verdict, at_chance=() if verdict == "invariant" else factor.amounts,
        )  # fmt: skip
        factors.append(found)
    splits = tuple(
        SplitUsed(each.name, each.config.digest, expected_digest(each), each.count) for each in bench.splits("locate")
    )
    return replace(
        result, model=model, quick=False, factors=tuple(factors), splits=splits, neutral=number, chance=chance
    )


def test_the_leaderboard_says_that_there_is_nothing_and_how_to_change_that(tmp_path: Path) -> None:
    page = make_leaderboard.page(tmp_path)
    assert "**No result has been submitted yet**" in page
    assert "gerd bench run --model" in page
    assert "| model |" not in page


def test_the_leaderboard_has_those_that_were_submitted(result: BenchResult, folder: Path, tmp_path: Path) -> None:
    for model, error in (("blind", 7.4), ("good", 1.25), ("better", 0.75)):
        write_result(full_size(result, model, error), tmp_path / f"locate-one-{model}.json")
    page = make_leaderboard.page(tmp_path)
    assert "No result" not in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == ["better", "good", "blind"]  # at chance: last
    assert "0.75 (0.675 to 0.825) px" in rows[0]
    assert "translation, rotation, scale" in rows[0]
    assert "(at chance)" in rows[2]
    assert "rotation" not in rows[2]
    (tmp_path / "quick.json").write_bytes((folder / "results.json").read_bytes())
    with pytest.raises(GerdError, match=r"quick.json: is of --quick, which has no place in the table"):
        make_leaderboard.page(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "relu-1"], "relu-1: has weights; allowed: --train, or --checkpoint"),
        (["--model", "relu1", "--train"], "did you mean relu-1?"),
        (["--model", "relu-1", "--train", "--task", "locat"], "did you mean locate?"),
        (["--model", "relu-1", "--train", "--regime", "inne"], "did you mean inner?"),
        (["--model", "relu-1", "--train", "--checkpoint", "w.pt"], "--train, --checkpoint: allowed: one of them"),
        (["--model", "relu-1", "--seeds", "3"], "--seeds: goes with --train"),
        (["--model", "relu-1", "--checkpoint", "none.pt"], "none.pt"),
        (["--model", "mine.py:missing", "--train"], "cannot be imported: FileNotFoundError"),
        (["--model", "bank-time", "--train", "--task", "flow"], "allowed for flow: constant, relu-1"),
        (["--model", "relu-1", "--train", "--device", "gpu"], "gpu"),
    ],
)
def test_mistakes_are_found_before_anything_is_computed(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_here("bench", "run", "--quick", *arguments) != 0
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert list(tmp_path.glob("**/*.json")) == []


def test_a_function_without_weights_is_a_network_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """It has to answer in the right shape, and is told so before anything else."""
    (tmp_path / "of_mine.py").write_text("def build():\n    return lambda frames: frames.sum((2, 3))[..., :1]\n")
    monkeypatch.chdir(tmp_path)
    assert run_here("bench", "run", "--model", "of_mine:build", "--quick") == 1
    said = capsys.readouterr().err
    assert "locate: the answer has the shape (2, 49, 1); allowed: (recordings, steps, 2), here (2, 49, 2)" in said
    sys.modules.pop("of_mine")
