"""The studies at their smallest size: computed without the drawing packages, continued after a kill, drawn again."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from gerd.cli.app import app
from gerd.config.load import parse
from gerd.config.sweep import with_values
from gerd.errors import GerdError
from gerd.measures.measure import Curve, effect_size, summary
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.studies import covariance, demonstration, noise, symmetry, timescale
from gerd.studies.demonstration.trials import SCALES, STEPS
from gerd.studies.lab import drawing
from gerd.studies.lab.comparison import LARGE, Comparison, compared, each_seed, surely
from gerd.studies.lab.fitting import Deadline, OutOfTimeError, Training, batches, load_weights
from gerd.studies.lab.folder import StudyFolder, read_results, read_settings
from gerd.studies.lab.results import Example, Made, Results, Run, Settings, SweepResult
from gerd.studies.lab.running import STUDIES, about, compute_study, run_study
from gerd.studies.lab.training import TINY, Data, Order, Size, abstaining_loss, errors, place_loss, recordings, train
from gerd.studies.models import TIME_BANK, Reading, ScaleChannels, TimeChannels
from gerd.studies.timescale import findings, pictures, trials
from gerd.version import __version__

HEAVY = ("matplotlib", "typer", "rich", "scipy.stats", "safetensors", "PIL", "contourpy")
BARE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in {heavy!r}:
            raise ImportError("not on this machine: " + name)
sys.meta_path.insert(0, Refuse())
from gerd.studies.lab.running import compute_study
for study in {studies!r}:
    compute_study(study, {out!r} + "/" + study, size="smoke")
"""
DOCS = Path(__file__).parents[2] / "docs" / "studies"
PUBLISHED = sorted(file.parent.name for file in DOCS.glob("*/report.md"))
EARLIER = "Of an earlier version, made on "  # what a report of another version says first
PATIENCE = 1200  # seconds, for all studies together on a slow machine
SMALLEST = Size(side=32, training=12, tests=4, epochs=3, batch=4, seeds=1, layers=TINY, first_step=20)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All studies, computed by Python calls in a process that cannot import what only commands and reports need."""
    out = tmp_path_factory.mktemp("studies")
    program = BARE.format(heavy=HEAVY, studies=STUDIES, out=str(out))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    return out


@pytest.mark.parametrize("study", STUDIES)
def test_a_report_is_drawn_from_what_was_computed(study: str, computed: Path) -> None:
    out = computed / study
    before = (out / "results.json").read_bytes()
    result = CliRunner().invoke(app, ["study", study, "--from", str(out)])
    assert result.exit_code == 0, result.output
    text = (out / "report.md").read_text("utf-8")
    assert text.startswith("# ")
    assert "the paper's network" not in text
    assert "A smoke run: numbers mean nothing" in text
    for verdict in ("## Conclusions", "surely better", "What has to hold", "Respected in"):
        assert verdict not in text
    figures = re.findall(r"!\[\w+\]\((\w+)\.png\)", text)
    assert figures
    for name in figures:
        with Image.open(out / f"{name}.png") as picture:
            assert picture.convert("L").getextrema()[0] < 128  # something is drawn
        assert "</svg>" in (out / f"{name}.svg").read_text("utf-8")
    assert len((out / "summary.csv").read_text("utf-8").splitlines()) > 9
    if study in ("timescale", "covariance"):
        check_cells(out / "channels.csv")
    check_page((out / "page.html").read_text("utf-8"), len(figures) + (study == "timescale"))
    assert {"config.yaml", "settings.json", "runs"} <= {file.name for file in out.iterdir()}
    assert (out / "results.json").read_bytes() == before
    assert str(out.parent) not in text.replace(f"--out {out}", "")


@pytest.mark.parametrize("study", STUDIES)
def test_a_report_names_the_command_the_config_and_the_version_that_made_it(
    study: str, computed: Path, tmp_path: Path
) -> None:
    results = read_results(computed / study)
    check_provenance(drawing.provenance(results), tmp_path)
    other = replace(results.settings, size=replace(results.settings.size, rate=0.5))
    with pytest.raises(AssertionError, match="config"):
        check_provenance(drawing.provenance(replace(results, settings=other)), tmp_path / "other")


@pytest.mark.parametrize("study", PUBLISHED)
def test_a_published_report_is_of_what_is_installed_or_says_first_that_it_is_not(study: str, tmp_path: Path) -> None:
    check_published((DOCS / study / "report.md").read_text("utf-8"), tmp_path)
    page = DOCS / study / "page.html"
    if page.exists():
        assert (EARLIER in page.read_text("utf-8")) == (EARLIER in (DOCS / study / "report.md").read_text("utf-8"))


def test_a_report_of_another_version_has_to_say_so(computed: Path, tmp_path: Path) -> None:
    results = read_results(computed / "noise")
    new = f"# Noise\n\nMuch was found.\n\n{drawing.provenance(results)}"
    old = new.replace(f"(gerd {__version__}", "(gerd 0.9")
    said = f"> **{EARLIER}{results.made.date}.** Today's is another.\n\nMuch"
    check_published(new, tmp_path / "a")
    check_published(old.replace("Much", said, 1), tmp_path / "b")
    late = old.replace("was found", f"was found. {EARLIER}{results.made.date}.")
    other_day = old.replace("Much", said.replace(results.made.date, "2026-01-01"), 1)
    for number, wrong in enumerate((old, late, other_day, new.replace("Much", said, 1))):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            check_published(wrong, tmp_path / f"wrong-{number}")


def check_published(text: str, empty: Path) -> None:
    """A report is of what is installed, or its first paragraph says that it is not, and when it was made."""
    first = text.split("\n\n")[1]
    date = re.search(r"^Made on (\S+) by", text, re.MULTILINE)
    assert date, "the report does not say when it was made"
    if not first.startswith(f"> **{EARLIER}"):
        check_provenance(text, empty)
        return
    assert first.startswith(f"> **{EARLIER}{date[1]}.**")
    with pytest.raises(AssertionError):  # or it is of what is installed, and says that it is not
        check_provenance(text, empty)


def check_provenance(text: str, empty: Path) -> None:
    """The installed program has this version, knows this command, and takes it for the same config."""
    found = re.search(
        r"^Made on \S+ by `(gerd study [^`]+)`, config `([0-9a-f]{64})` \(gerd ([^,]+),", text, re.MULTILINE
    )
    assert found, "the report does not say what made it"
    command, digest, version = found.groups()
    assert version == __version__
    arguments = re.sub(r" --device \S+", "", command).split()[1:]  # the numbers do not depend on it
    result = CliRunner().invoke(app, [*arguments, "--minutes", "0", "--out", str(empty)])
    assert isinstance(result.exception, OutOfTimeError), result.output
    assert read_settings(empty).digest == digest, f"{command} has another config by now; the study has to be run again"


def ends(*limits: int) -> range:
    """A range, and of the steps of an animation only the first and the last."""
    whole = range(*limits)
    return whole[:: len(whole) - 1] if limits == (0, STEPS, 2) else whole


def check_cells(file: Path) -> None:
    """Every number of every covariance matrix has its sample size and its interval."""
    with open(file, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) % 9 == 0
    assert rows
    for row in rows:
        number = {name: float(value) for name, value in row.items() if name not in ("model", "test", "group")}
        assert number["n"] >= 5
        assert number["median_interval_low_px"] <= number["median_px"] <= number["median_interval_high_px"]
        assert number["share_interval_low"] <= number["mean_share"] <= number["share_interval_high"]
    assert any(float(row["median_interval_low_px"]) < float(row["median_interval_high_px"]) for row in rows)


class Loaded(HTMLParser):
    """What a page would load, and its pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]


def check_page(text: str, pictures: int) -> None:
    """It holds all of its pictures, and needs nothing else."""
    loaded = Loaded()
    loaded.feed(text)
    assert len(loaded.addresses) == pictures
    assert all(address.startswith("data:image/") for address in loaded.addresses)
    assert "url(" not in text.split("<body>")[0]
    assert "<table>" in text


def test_a_report_of_less_than_the_study_says_of_what(tmp_path: Path) -> None:
    full = demonstration.SIZES["full"]
    whole = growing(9.0)
    assert drawing.smaller(replace(whole, settings=replace(whole.settings, size=full)), full) == ""
    more = replace(full, seeds=6)
    assert drawing.smaller(replace(whole, settings=replace(whole.settings, size=more)), full) == ""
    quick = replace(demonstration.SIZES["quick"], seeds=5)
    said = drawing.smaller(replace(whole, settings=replace(whole.settings, size=quick)), full)
    for part in (
        "64 pixels along a side of the frame in place of 96, 350 recordings for training in place of 1400, ",
        "100 recordings for each test in place of 400, 352 updates of each network in place of 1750, layers of ",
        "2 → 6 → 12 → 8 → 8 → 1 features in place of 2 → 12 → 36 → 16 → 16 → 1, without five channels, equal weights",
        "`gerd study symmetry` at its full size was not run for this report.",
    ):
        assert part in said
    assert "seeds" not in said
    first = symmetry.report(whole, tmp_path).split("\n\n")[1]
    assert first.startswith("> **Smaller than the study itself: ")


def test_the_seeds_of_a_number_in_one_line() -> None:
    assert drawing.over_seeds([(1.0, (0.5, 1.5)), (2.0, (1.25, 4.0))]) == "1.50 (0.50 to 4.00)"
    assert drawing.over_seeds([(1.0, (0.5, 1.5))]) == "1.00 (0.50 to 1.50)"


def test_mixed_noise_is_that_of_the_noisy_training() -> None:
    clean = noise.stimuli(32)
    trained = with_values(clean, {f"noise.{name}": level for name, level in noise.LEVELS.items()})
    for multiple, expected in ((0.0, clean), (1.0, trained)):
        found = recordings(clean, 3, 2, "cpu", noise.mixed(multiple))
        wanted = recordings(expected, 3, 2, "cpu")
        assert torch.equal(found.frames, wanted.frames)
        assert torch.equal(found.places, wanted.places)


def check_opening_of_symmetry(said: list[str], respected: dict[tuple[str, float], str], tests: Sequence[Any]) -> None:
    """The counts are those of the verdicts, and no other growth is larger than the one that is named."""
    kinds = {kind: {verdict for (each, _), verdict in respected.items() if each == kind} for kind, _ in respected}
    wholly = [kind for kind, verdicts in kinds.items() if verdicts == {"yes"}]
    never = [kind for kind, verdicts in kinds.items() if verdicts == {"no"}]
    unsure = [kind for kind, verdicts in kinds.items() if "yes" not in verdicts and len(verdicts) > 1]
    unsure += [kind for kind, verdicts in kinds.items() if verdicts in ({"undecided"}, {"at chance"})]
    assert f"Of {len(kinds)} transformations the network respects {len(wholly)} in all amounts" in said[0]
    assert f"; it does not respect {len(never)} in any amount ({', '.join(never) or 'none'})" in said[0]
    assert f"and the other {len(unsure)} are certain to be respected in none (" in said[0]
    assert all(kind in said[0] for kind in unsure)
    growth = float(re.search(r"grows by (-?[\d.]+)", said[1])[1])
    medians = [np.median(np.subtract(errors, test.errors[0])) for test in tests for errors in test.errors]
    assert abs(growth) == pytest.approx(max(np.abs(medians)), abs=0.006)
    assert f"the error is {np.median(tests[0].errors[0]):.2f} (" in said[2]


def test_the_opening_of_a_report_follows_its_numbers(computed: Path) -> None:
    clean, mixture, alone = noise.opening(read_results(computed / "noise", "noise"))
    assert "chance even without noise" in clean or "surely more than doubled from" in clean
    *single, mixed = (len(sweep.amounts) - 1 for sweep in noise.SWEEPS)
    assert f" of {mixed} multiples" in mixture
    assert f" of {sum(single)} levels" in alone
    results = read_results(computed / "covariance", "covariance")
    said = covariance.opening(results)
    assert len(said) == len(covariance.BANKS) == 3
    for line, bank in zip(said, covariance.BANKS, strict=True):
        for name, start in ((bank.name, "by a factor of "), (bank.alone, "with one channel by ")):
            medians = [np.median(errors) for errors in results.of(name)[0].test(bank.sweep).errors]
            assert f"{start}{max(medians) / min(medians):.2f} (" in line


def test_drawing_again_gives_the_same_files_elsewhere(computed: Path, tmp_path: Path) -> None:
    for folder_ in (tmp_path / "a", tmp_path / "b"):
        run_study("noise", folder_, computed / "noise", "full", {}, device="cpu", seed=0, minutes=None)
    names = {file.name for file in (tmp_path / "a").iterdir()}
    assert names == {"report.md", "page.html", "noise.png", "noise.svg", "summary.csv"}
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_results_have_every_number_and_what_made_them(computed: Path) -> None:
    results = read_results(computed / "timescale", "timescale")
    assert set(results.made.versions) == {"gerd", "torch", "numpy", "python"}
    assert results.made.command == "gerd study timescale --smoke"
    assert results.settings.seed == 0
    assert sorted(results.models) == sorted(trials.EVERY)
    run = results.of("invariant at 25%")[0]
    for sweep in trials.SWEEPS:
        test = run.test(sweep)
        assert test.amounts == SCALES
        for fused, channels, weights in zip(test.errors, test.channels, test.weights, strict=True):
            assert len(fused) == trials.SIZES["smoke"].tests
            assert np.shape(channels) == (len(TIME_BANK), len(fused))
            np.testing.assert_allclose(np.sum(weights, axis=0), 1, atol=1e-3)
    assert len(results.of(trials.named(trials.EQUAL, 0.25))[0].learnt) == 2
    assert [len(example.places) for example in results.examples] == [240, 60, 15]


def test_an_example_is_what_the_network_says_of_the_first_test_recording(computed: Path) -> None:
    size = trials.SIZES["smoke"]
    network = TimeChannels(layers=size.layers)
    load_weights(network, computed / "timescale" / "runs" / "invariant-at-25-0.pt", "cpu")
    example = read_results(computed / "timescale").examples[2]
    config = with_values(
        trials.stimuli(size.side), {"time_scale": 4.0, "steps": 15, "noise.background": 0.004, "integrator.warmup": 1}
    )
    data = recordings(config, size.training, 1, "cpu")
    with torch.no_grad():
        reading = network.read(data.frames)
    np.testing.assert_allclose(example.truth, data.places[0], atol=0.01)
    np.testing.assert_allclose(example.places, reading.place[0], atol=0.01)
    heat = np.frombuffer(b64decode(example.heat[14]), np.uint8).reshape(example.rows, example.columns)
    x = (heat.sum(0) * (np.arange(example.columns) + 0.5)).sum() / heat.sum() * size.side / example.columns
    assert x == pytest.approx(example.places[14][0], abs=0.5)


def test_training_reduces_the_loss(computed: Path) -> None:
    for run in read_results(computed / "timescale").runs:
        assert min(run.losses[1:]) < run.losses[0], run.model


def test_a_network_learns_the_place_of_a_square(tmp_path: Path) -> None:
    """Twelve recordings and a minute fraction of the training: already nearer than before, and than chance."""
    config = trials.stimuli(32)
    data = recordings(config, 0, 12, "cpu")
    order = Order(Size(side=32, training=12, tests=4, epochs=20, batch=4, seeds=1, layers=TINY), say=lambda _: None)
    network = ScaleChannels([2.5], layers=TINY, seed=0)
    before = errors(network, data, 20).fused.mean()
    train(network, data, place_loss, order, 0, tmp_path / "unused.pt", "test")
    after = errors(network, data, 20).fused.mean()
    assert after < 0.6 * before


def trained(file: Path, order: Order) -> dict[str, torch.Tensor]:
    network = TimeChannels([1.25, 2.5, 5.0], layers=TINY, seed=0)
    data = recordings(trials.stimuli(32), 0, 12, "cpu")
    train(network, data, abstaining_loss(2, [0, 1], sampled=5), order, 0, file, "test")
    return network.state_dict()


class Once(Deadline):
    """Lets one epoch pass."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "epochs", 0)

    def check(self) -> None:
        object.__setattr__(self, "epochs", self.epochs + 1)  # type: ignore[attr-defined]
        if self.epochs > 1:  # type: ignore[attr-defined]
            raise OutOfTimeError("the time is over")


def test_a_training_that_was_stopped_ends_with_the_same_weights(tmp_path: Path) -> None:
    said: list[str] = []
    whole = trained(tmp_path / "whole.pt", Order(SMALLEST, say=said.append))
    assert [line.split(",")[0] for line in said] == [f"test: epoch {k}/3" for k in (1, 2, 3)]
    for _ in range(2):
        with pytest.raises(OutOfTimeError):
            trained(tmp_path / "parts.pt", Order(SMALLEST, deadline=Once(), say=said.append))
    parts = trained(tmp_path / "parts.pt", Order(SMALLEST, say=said.append))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    again = trained(tmp_path / "whole.pt", Order(SMALLEST, say=lambda line: pytest.fail(line)))
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def validated(file: Path, deadline: Deadline = Deadline()) -> tuple[dict[str, torch.Tensor], Training]:  # noqa: B008
    """A training at a rate at which it gets worse again, so that its last epoch is not its best."""
    network = ScaleChannels([2.5], layers=TINY, seed=0)
    config = trials.stimuli(32)
    data, validation = recordings(config, 0, 12, "cpu"), recordings(config, 12, 6, "cpu")
    order = Order(replace(SMALLEST, epochs=8, rate=0.3), deadline=deadline, say=lambda _: None)
    training = train(network, data, place_loss, order, 0, file, "test", validation)
    found = errors(network, validation, SMALLEST.first_step).fused.mean()
    assert found == pytest.approx(min(training.validation), abs=1e-3)
    return network.state_dict(), training


def test_the_epoch_that_is_best_in_validation_counts(tmp_path: Path) -> None:
    whole, training = validated(tmp_path / "whole.pt")
    assert len(training.validation) == len(training.losses) == 8
    assert min(training.validation) < training.validation[-1]
    kept = torch.load(tmp_path / "whole.pt", weights_only=True)
    assert all(torch.equal(whole[name], kept["network"][name]) for name in whole)
    for _ in range(7):
        with pytest.raises(OutOfTimeError):
            validated(tmp_path / "parts.pt", Once())
    parts, again = validated(tmp_path / "parts.pt")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert again.validation == training.validation


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(b"not weights")
    with pytest.raises(GerdError, match=r"x\.pt: cannot be read; delete it"):
        trained(tmp_path / "x.pt", Order(SMALLEST))


def test_a_study_continues_where_it_was(computed: Path, tmp_path: Path) -> None:
    """A finished run is not trained again; one that is missing is, to the same numbers."""
    out = tmp_path / "covariance"
    subprocess.run(["cp", "-r", str(computed / "covariance"), str(out)], check=True)
    for file in ("results.json", "runs/one-channel-at-rest-0.json"):
        (out / file).unlink()
    said: list[str] = []
    results = covariance.compute(out, Order(covariance.SIZES["smoke"], say=said.append))
    assert said == ["[1/1] one channel at rest, seed 0: testing"]  # weights were there, errors were not
    assert results.runs == read_results(computed / "covariance").runs


def invented(invariant: float, equal: float = 6.0, growth: float = 0.0) -> Results:
    """Results in which the invariant network has this error at every scale, and `growth` more for each octave away."""
    rng = np.random.default_rng(0)

    def run(model: str, seed: int, error: float) -> Run:
        name = model.split(" at ")[0]
        channels = len(TIME_BANK) if name in (trials.INVARIANT, trials.EXACT) else 1 if name in trials.SINGLES else 5
        grown = [error + growth * abs(np.log2(s)) * (name == trials.INVARIANT) for s in SCALES]
        used = np.full((len(SCALES), channels, 30), 0.0)
        for j, scale in enumerate(SCALES):
            used[j, trials.matched_channel(scale) if channels == len(TIME_BANK) else 0] = 1.0
        tests = tuple(
            SweepResult(
                sweep.name,
                SCALES,
                errors=tuple(value + rng.normal(0, 0.02, 30) for value in grown),
                channels=tuple(error + rng.random((channels, 30)) for _ in SCALES),
                weights=tuple(used),
            )
            for sweep in trials.SWEEPS
        )
        return Run(model, seed, (1.0,), 1.0, tests, learnt=(4.0, 4.5) if name == trials.EQUAL else ())

    errors = dict.fromkeys(trials.EVERY, 5.0)
    errors |= {trials.named(trials.INVARIANT, kept): invariant for kept in trials.KEPT}
    errors |= {trials.named(trials.EQUAL, kept): equal for kept in trials.KEPT}
    runs = tuple(run(model, seed, error) for model, error in errors.items() for seed in range(2))
    own = {"kept": list(trials.KEPT), "background": list(trials.IN_TRAINING)}
    settings = Settings("timescale", 0, replace(SMALLEST, seeds=2), "digest", own)
    example = Example(
        1.0, (b64encode(bytes([0, 255, 0, 0])).decode(),), 2, 2, ((5, 5),), ((5, 6),), ((1,) + (0,) * 12,)
    )
    chance = summary([80.0, 90.0, 100.0])
    return Results(settings, Made("2026-01-01", "gerd", "x", 1.0, {}), chance, runs, (example,))


def only(results: Results, models: tuple[str, ...], seeds: int = 2) -> Results:
    """Without the other networks."""
    return replace(results, runs=tuple(run for run in results.runs if run.model in models and run.seed < seeds))


def with_errors(run: Run, changed: dict[float, list[float]]) -> Run:
    """With other errors at some amounts."""
    test = run.tests[0]
    errors = tuple(changed.get(amount, known) for amount, known in zip(test.amounts, test.errors, strict=True))
    return replace(run, tests=(replace(test, errors=errors),))


def held(results: Results) -> list[bool | None]:
    return [bar.held for bar in findings.bars(results)]


def test_conclusions_follow_from_the_numbers() -> None:
    flat = " ".join(findings.conclusions(invented(2.0)))
    assert "(within 1.5: invariant in 2 of 2 seeds)" in flat
    assert "largest share to the channel that matches the scale in 18 of 18 cases in own time" in flat
    assert "surely better than each single time constant at 8 of 8 unseen scales in own time" in flat
    assert "five channels with equal weights have d > 0.8 in every seed at 0 of 8 unseen scales in own time" in flat
    assert "middle time constants of 4.0 to 4.5 steps; they began at 5" in flat
    better = " ".join(findings.conclusions(only(invented(2.0, equal=4.0), trials.QUICK)))
    assert "five channels with equal weights have d > 0.8 in every seed at 8 of 8 unseen scales in own time" in better
    for mu in ("1.25", "2.5"):
        alone = (
            f"Against five channels with equal weights, μ = {mu} alone is surely better at 8 and surely worse at 0 of 8"
        )
        assert alone in flat
        assert alone not in better  # it was not trained
    steep = " ".join(findings.conclusions(only(invented(2.0, growth=1.0), trials.QUICK)))
    assert "(within 1.5: not invariant in 2 of 2 seeds)" in steep
    with_singles = (*trials.QUICK, *(trials.named(single, trials.KEPT[0]) for single in trials.SINGLES))
    worse = " ".join(findings.conclusions(only(invented(7.0), with_singles)))
    assert "surely better than each single time constant at 0 of 8 unseen scales" in worse
    few = " ".join(findings.conclusions(only(invented(2.0), trials.SIZES["quick"].models, seeds=1)))
    assert "surely better than μ = 5 alone at 8 of 8" in few  # not said of time constants that were not trained
    assert "With 5%" not in few


def test_bars_hold_where_the_numbers_are_so() -> None:
    assert held(invented(2.0)) == [True] * 7
    assert held(invented(2.0, growth=0.45)) == [True] * 7  # (2 + 2 · 0.45) / 2 = 1.45
    assert held(invented(2.0, growth=0.6))[:2] == [False, True]
    assert held(invented(2.0, growth=1.1))[:2] == [False, False]
    flat, *others = invented(2.0).runs
    tests = tuple(replace(test, chance=tuple(np.array(test.errors) - 0.1)) for test in flat.tests)
    lost = replace(invented(2.0), runs=(replace(flat, tests=tests), *others))
    assert held(lost)[:2] == [False, False]  # as flat, and at chance
    assert held(invented(5.5)) == [True] * 5 + [False] * 2  # better than equal weights, not than μ = 5
    results = invented(2.0)
    first, *others = results.runs
    test = first.tests[0]
    away = replace(test, weights=(np.roll(test.weights[0], 1, axis=0), *test.weights[1:]))
    results = replace(results, runs=(replace(first, tests=(away, *first.tests[1:])), *others))
    bar = findings.bars(results)[2]
    assert (bar.in_seeds, bar.held) == ("8, 9", False)
    alone = only(results, ("invariant at 25%", trials.named(trials.EQUAL, 0.25)))
    assert held(alone)[3:] == [True, True, None, None]


def test_a_report_of_a_study_that_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of the same seed are compared; what is missing is said."""
    monkeypatch.setattr(pictures, "animation", lambda *_: "")  # of one network
    monkeypatch.setattr(drawing, "save_figure", lambda _, file, kind: file.write_bytes(kind.encode()))
    results = only(invented(2.0), trials.QUICK)
    runs = tuple(run for run in results.runs if (run.model, run.seed) != (trials.named(trials.EQUAL, 0.25), 1))
    results = replace(results, runs=runs, missing=1)
    text = drawing.write_report(timescale.report, results, tmp_path).read_text("utf-8")
    assert "Not finished: 1 network missing" in text
    assert "| 0.25 | 30×1 |" in text
    assert "| 0.25 | 30×2 |" in text
    assert len(findings.versus(results, trials.EQUAL, trials.INVARIANT, 0.25, trials.OWN_TIME)[0].effects) == 1


def test_a_report_says_which_package_its_page_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written as Markdown stays."""
    monkeypatch.setitem(sys.modules, "markdown_it", None)  # as if it were not installed
    with pytest.raises(GerdError, match=r"needs the package markdown-it-py: pip install 'gerd-events\[study\]'"):
        drawing.write_report(lambda results, folder: "# Found\n", invented(2.0), tmp_path)
    assert (tmp_path / "report.md").read_text("utf-8") == "# Found\n"


def test_a_study_whose_time_is_over_keeps_what_is_finished(computed: Path, tmp_path: Path) -> None:
    out = tmp_path / "covariance"
    subprocess.run(["cp", "-r", str(computed / "covariance"), str(out)], check=True)
    (out / "runs" / "one-channel-at-rest-0.json").unlink()
    (out / "results.json").unlink()
    with pytest.raises(OutOfTimeError, match=r"before 1 network; the same command continues, and --from .* draws"):
        compute_study("covariance", out, size="smoke", minutes=0)
    results = read_results(out)
    assert results.missing == 1
    assert covariance.BANKS[0].alone not in results.models
    compute_study("covariance", out, size="smoke")
    assert read_results(out).missing == 0


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    """A run that another process has is left to it, and not begun twice."""
    folder = StudyFolder(tmp_path, "timescale", Order(SMALLEST), trials.stimuli(32))
    other = StudyFolder(tmp_path, "timescale", Order(SMALLEST), trials.stimuli(32))
    run = Run("one", 0, (0.5,), 5.0, (SweepResult("time scale", (1.0,), ((2.0, 3.0),)),))

    def make() -> Run:
        assert not other.is_free("one")
        assert other.is_free("two")
        return run

    assert other.is_free("one")
    assert folder.kept("one", Run, make) == run
    assert other.is_free("one")
    assert other.kept("one", Run, lambda: pytest.fail("it is there")) == run


def test_noise_is_said_to_double_an_error_only_where_it_surely_does() -> None:
    """In two seeds; at the third level one of them falls back, so that only the last level counts."""
    base = np.random.default_rng(0).normal(1, 0.05, (2, 50))
    factors = [(1, 1), (3, 3), (3, 1.5), (3, 3)]
    errors = tuple(base * np.array(pair)[:, None] for pair in factors)
    assert noise.doubled(Curve((0.0, 0.1, 0.2, 0.3), errors)) == 0.3
    assert noise.doubled(Curve((0.0, 0.1), errors[:2])) == 0.1
    assert noise.doubled(Curve((0.0, 0.1, 0.2), errors[:3])) is None
    assert noise.doubled(Curve((0.0, 0.1), (base, 2.0 * base))) is None  # twice, and not surely more


def test_the_ratio_of_a_study_is_that_of_its_seeds(computed: Path) -> None:
    results = read_results(computed / "covariance")
    bank = covariance.BANKS[0]
    run = results.of(bank.name)[0]
    flat_run = replace(with_errors(run, dict.fromkeys(covariance.BOOSTS, [5.0] * 6)), seed=1)
    results = replace(results, runs=(*results.runs, flat_run))
    (ratio, _), (flat, _) = (curve.ratio() for curve in each_seed(results.curve(bank.name, bank.sweep)))
    assert flat == 1
    assert f"by a factor of {(ratio + 1) / 2:.2f} (1.00 to " in covariance.conclusions(results)[0]


def test_no_p_where_the_seeds_do_not_agree() -> None:
    a = np.random.default_rng(1).normal(5, 1, 40)
    less, more = effect_size(a, a - 1), effect_size(a, a + 1)
    assert Comparison(2.0, a[None], a[None], (less, more)).p is None
    assert Comparison(2.0, a[None], a[None], (less, less)).p == less.p
    both = [Comparison(2.0, a[None], a[None], effects) for effects in ((less, more), (less, less))]
    assert [line.split("|")[-2].strip() for line in drawing.versus("s", "a", "b", both).splitlines()[2:]] == [
        "–",
        f"{less.p:.1g}",
    ]


def test_better_and_worse_are_said_only_where_every_seed_is_sure() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(5, 1, 40)
    alike, less = effect_size(a, a + rng.normal(0, 1, 40)), effect_size(a, a - 1 + rng.normal(0, 0.1, 40))
    assert alike.difference_interval[0] < 0 < alike.difference_interval[1]
    verdicts = {
        (True, False): (less, less),
        (False, False): (less, alike),
        (False, True): (effect_size(a - 1, a + rng.normal(0, 0.1, 40)),),
    }
    for (better, worse), effects in verdicts.items():
        found = Comparison(2.0, a[None], a[None], effects)
        assert (found.better, found.worse) == (better, worse)


def test_every_epoch_has_all_recordings_in_an_order_of_its_own() -> None:
    numbers = torch.arange(10)
    data = Data(numbers, numbers)
    orders = [
        torch.cat(
            [batch.frames for batch in batches([data], 4, torch.Generator().manual_seed(seed), data.frames.device)]
        )
        for seed in (0, 1, 100_003)
    ]
    assert all(torch.equal(order.sort().values, numbers) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 3


def test_the_matched_channel_is_mu_over_s() -> None:
    for scale, mu in {0.25: 20, 0.5: 10, 1.0: 5, 2.0: 2.5, 4.0: 1.25}.items():
        assert TIME_BANK[trials.matched_channel(scale)] == mu
    assert [trials.matched_channel(scale) for scale in SCALES] == [10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert trials.OTHERS == (0, 1, 2, 3, 4, 8, 9, 10, 11, 12)


def test_banks_know_how_far_channels_are_from_an_amount() -> None:
    moving, scaled, turned = covariance.BANKS
    assert [moving.channels[moving.matched(boost)] for boost in (-3.0, 0.0, 1.5)] == [-3, 0, 1.5]
    assert scaled.channels[scaled.matched(0.7)] == pytest.approx(2**-0.5)
    assert [turned.channels[turned.matched(angle)] for angle in (20.0, 88.0, 45.0)] == [22.5, 0, 45]
    assert turned.others == [2, 3, 4, 5, 6]
    for bank in covariance.BANKS:
        assert bank.channels[bank.anchor] == bank.sweep.trained
        assert bank.anchor not in bank.others


def test_the_test_recordings_are_the_same_at_every_scale() -> None:
    config = trials.stimuli(32)
    first = recordings(config, 30, 3, "cpu")
    faster = recordings(config, 30, 3, "cpu", trials.SAME_LENGTH.transformation(2.0))
    torch.testing.assert_close(faster.places[:, 5], first.places[:, 10])
    speed = first.places[:, 1] - first.places[:, 0]
    assert (speed.abs() == 1).all()


def test_in_own_time_every_scale_shows_the_same_path_with_as_much_noise() -> None:
    config = trials.stimuli(32)
    whole = recordings(config, 30, 3, "cpu")
    for scale in (0.25, 0.5, 2.0, 4.0):
        own = trials.own_time(config, scale)
        assert own.steps == 60 / scale
        assert own.noise.background == pytest.approx(0.001 * scale)
        assert own.noise.event == config.noise.event
        shown = recordings(own, 30, 3, "cpu", trials.OWN_TIME.transformation(scale)).places
        step = max(1, round(1 / scale))
        torch.testing.assert_close(shown[:, ::step], whole.places[:, :: max(1, round(scale))])
        assert trials.OWN_TIME.first_step is not None
        assert trials.OWN_TIME.first_step(20, scale) == 20 / scale


def test_an_abstaining_loss_wants_one_channel_right_and_another_silent() -> None:
    """Of channels whose answer is made up: the loss is what it is said to be, and the other channels play no part."""
    frames, truth = torch.zeros(2, 8, 2, 16, 16, dtype=torch.bool), torch.rand(2, 8, 2) * 16
    asked = []

    class Told:
        def read(self, _: torch.Tensor, channels: list[int], steps: torch.Tensor) -> Reading:
            asked.append((tuple(channels), steps.tolist()))
            places = truth[:, None, steps].repeat(1, 2, 1, 1)
            places[:, 1] += 5
            evidence = torch.stack(
                [torch.full(places.shape[:1] + places.shape[2:3], value) for value in (1.0, -2.0)], 1
            )
            return Reading(places[:, 0], places, evidence, evidence)

    draws = torch.Generator().manual_seed(0)
    loss = abstaining_loss(3, [0, 5], sampled=4, weight=0.1)
    found = [float(loss(Told(), Data(frames, truth), 2, draws)) for _ in range(20)]
    expected = 0.1 * (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(-2.0)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert {channels for channels, _ in asked} == {(3, 0), (3, 5)}
    assert all(len(steps) == 4 == len(set(steps)) and min(steps) >= 2 for _, steps in asked)
    assert len({tuple(steps) for _, steps in asked}) > 5


@pytest.mark.parametrize("study", [covariance, demonstration, noise, symmetry, timescale])
def test_every_study_has_the_three_sizes(study: Any) -> None:
    assert list(study.SIZES) == list(study.TAKES) == ["full", "quick", "smoke"]
    assert [size.conclusive for size in study.SIZES.values()] == [True, True, False]


@pytest.mark.parametrize("study", STUDIES)
def test_the_help_of_a_study(study: str) -> None:
    result = CliRunner().invoke(app, ["study", study, "--help"])
    assert result.exit_code == 0
    for part in ("--minutes", about(study), "Takes ", "results.json"):
        assert part in result.output
    assert ("float32 (batch, steps, 2, height, width)" in result.output) == (study == "symmetry")
    assert "--minutes" in CliRunner().invoke(app, ["study", "-h"]).output


def test_a_user_measures_a_network_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean of where many events were lately respects translation, and does not respect background noise."""
    (tmp_path / "mine.py").write_text(
        """
import torch
class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(0.0))
    def forward(self, frames):
        seen = frames.cumsum(1).sum(2)
        recent = seen - torch.cat([torch.zeros_like(seen[:, :8]), seen[:, :-8]], dim=1)
        heat = torch.nn.functional.avg_pool2d(recent, 7, 1, 3) ** 4 + 1e-9
        x, y = torch.arange(heat.shape[-1]) + 0.5, torch.arange(heat.shape[-2]) + 0.5
        total = heat.sum((-1, -2))
        place = torch.stack([(heat.sum(-2) * x).sum(-1) / total, (heat.sum(-1) * y).sum(-1) / total], dim=-1)
        return self.gain * place
def build():
    return Mean()
def nothing():
    return None
"""
    )
    torch.save({"state_dict": {"gain": torch.tensor(1.0)}}, tmp_path / "mine.pt")
    monkeypatch.chdir(tmp_path)
    arguments = ["study", "--smoke", "--model", "mine:build", "--checkpoint", "mine.pt", "--out", "own"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    results = read_results(Path("own"))
    run = results.runs[0]
    assert run.model == "mine:build"
    respected = {
        (test.sweep, amount): verdict
        for test in run.tests
        for amount, verdict in zip(test.amounts[1:], symmetry.verdicts(test), strict=True)
    }
    assert all(respected["translation", amount] == "yes" for amount in (0.25, 0.5))
    assert respected["background", 0.03] == "no"
    assert symmetry.why_no_verdicts(results) is None
    check_opening_of_symmetry(symmetry.opening(results), respected, run.tests)
    assert "translation" in Path("own/report.md").read_text()
    assert (
        np.median(run.tests[0].errors[0]) < results.chance.median
    )  # the checkpoint was used: with a gain of 0 it would be far away
    assert {"yes", "no"} <= verdicts_in(Path("own/report.md").read_text("utf-8"))
    torch.save({"gain": torch.tensor(0.5)}, tmp_path / "mine.pt")
    other = CliRunner().invoke(app, arguments)
    assert "own: was begun with checkpoint_sha256" in str(other.exception)
    torch.save({"other": torch.tensor(0.5)}, tmp_path / "mine.pt")
    other = CliRunner().invoke(app, arguments)
    assert "mine.pt: cannot be loaded: " in str(other.exception)
    assert 'Missing key(s) in state_dict: "gain"' in str(other.exception)
    other = CliRunner().invoke(app, ["study", "--from", "own", "--model", "mine:build"])
    assert "--model: goes with computing, and --from computes nothing" in str(other.exception)

    (tmp_path / "constant.py").write_text(
        "import torch\n"
        "class Nowhere(torch.nn.Module):\n"
        "    def forward(self, frames):\n"
        "        return torch.full((*frames.shape[:2], 2), 99.0)\n"
        "build = Nowhere\n"
        "def scalar():\n"
        "    return lambda frames: frames.sum()\n"
    )
    constant = compute_study("symmetry", "constant", size="smoke", model="constant:build")
    said = symmetry.conclusions(constant)
    assert said == symmetry.opening(constant) == ["No verdict: the network says the same of every recording."]
    drawn = run_study("symmetry", "constant", Path("constant"), "smoke", {}, device="cpu", seed=0, minutes=None)
    assert verdicts_in(drawn.read_text("utf-8")) == {"", "no verdict"}
    result = CliRunner().invoke(app, ["study", "--smoke", "--model", "constant:scalar", "--out", "scalar"])
    assert "a tensor with one row for each" in str(result.exception)

    torus = "sensor: {width: 32, height: 32}\nsteps: 18\nactors: [{shape: square, translation: {border: wrap}}]\n"
    (tmp_path / "torus.yaml").write_text(torus)
    result = CliRunner().invoke(app, ["study", *arguments[1:4], "--config", "torus.yaml", "--out", "torus"])
    assert result.exit_code == 0, result.output
    report = Path("torus/report.md").read_text()
    assert "translation" not in report
    said = symmetry.conclusions(read_results(Path("torus")))
    assert said[-1].startswith("Not tested: time_scale; the recordings are too short for it: ")
    assert said[-1].endswith(": 24 steps would do for some time scales, 65 for all.")
    tested = {steps: symmetry.transformations(parse(torus.replace("18", f"{steps}")), 16) for steps in (23, 24, 65)}
    assert [len(kinds["time_scale"]) for kinds in tested.values()] == [1, 3, len(symmetry.TIME_SCALES)]

    for wrong, message in {
        "mine": "allowed: module:function",
        "mine:nobody": "cannot be imported: AttributeError",
        "nowhere:build": "cannot be imported: ModuleNotFoundError",
        "mine:nothing": "allowed: a module or a function of frames",
    }.items():
        with pytest.raises(GerdError, match=message):
            symmetry.load_model(wrong, None, "cpu")
    (tmp_path / "bad.pt").write_bytes(b"x")
    for file in ("bad.pt", "missing.pt"):
        with pytest.raises(GerdError, match=f"--checkpoint {file}: cannot be loaded"):
            symmetry.load_model("mine:build", file, "cpu")
    torch.save(torch.nn.Linear(2, 2), "whole.pt")
    with pytest.raises(
        GerdError, match=r"more than weights \(torch\.nn.*Linear\).*torch\.save\(net\.state_dict\(\), FILE"
    ):
        symmetry.load_model("mine:build", "whole.pt", "cpu")


def verdicts_in(report: str) -> set[str]:
    """The third cells of the table of a report."""
    rows = [line.split("|") for line in report.splitlines() if line.startswith("| ")]
    return {row[3].strip() for row in rows if row[3].strip() not in ("respected", "---")}


GROWTHS = {
    1.0: 0.0,
    0.25: -1.0,
    0.5: -0.7,
    0.7: -7.0,
    1.4: 0.7,
    2.0: 7.0,
    4.0: 1.0,
}  # of the error, at each factor of scale


def growing(error: float, chance: float = 20.0, different: int = 24, away: float = 0.5) -> Results:
    """Results of a network with this error without a transformation, and GROWTHS more at each factor.

    away: pixels between its answer and the transformed answer.
    """
    rng = np.random.default_rng(0)
    base = rng.normal(0, 1, 24)
    around = rng.permutation(np.linspace(-0.2, 0.2, 24))
    errors = tuple(error + base + growth + around * (s != 1) for s, growth in GROWTHS.items())
    far = tuple(chance + base + rng.normal(0, 1, 24) for _ in GROWTHS)
    apart = tuple(np.full(24, 10.0) for _ in GROWTHS)
    near = tuple(away + around for _ in GROWTHS)
    test = SweepResult("scale", tuple(GROWTHS), errors, chance=far, absolute=near, apart=apart, different=different)
    settings = Settings("symmetry", 0, replace(SMALLEST, tests=24, conclusive=True), "digest", {})
    made = Made("2026-01-01", "gerd", "x", 0.0, {})
    return Results(settings, made, summary(far[0]), (Run("mine", 0, (), 0.0, (test,)),))


def test_an_error_that_falls_is_no_more_respected_than_one_that_grows() -> None:
    """Where the error changes by 1 px, its interval is on both sides of the bound."""
    results = growing(9.0)
    assert symmetry.verdicts(results.runs[0].tests[0]) == ["undecided", "yes", "no", "yes", "no", "undecided"]
    said = symmetry.conclusions(results)
    assert said == [
        "Respected in all amounts tested: nothing.",
        "Respected in some: scale (0.5, 1.4).",
        "Not respected: scale (0.7, 2).",
        "Undecided: scale (0.25, 4).",
    ]


def test_an_answer_far_from_the_transformed_one_is_not_respected_however_little_the_error_changes() -> None:
    """Surely near it is an answer with its whole interval within 1 px."""
    for away in (1.0, 1.5):
        verdicts = symmetry.verdicts(growing(9.0, away=away).runs[0].tests[0])
        assert verdicts == ["undecided", "undecided", "no", "undecided", "no", "undecided"]


def test_a_network_that_cannot_see_along_x_does_not_respect_what_happens_there() -> None:
    """Under a boost its error grows in one half of a recording and falls in the other: its mean hardly changes."""

    def blind(frames: torch.Tensor) -> torch.Tensor:
        """The mean place of the events of the last six steps, and the middle along x."""
        rows = frames.double().sum((2, 4)).cumsum(1)
        lately = rows - torch.cat([torch.zeros_like(rows[:, :6]), rows[:, :-6]], dim=1)
        y = (lately @ (torch.arange(32.0, dtype=torch.float64) + 0.5)) / lately.sum(-1).clamp(min=1)
        return torch.stack([torch.full_like(y, 16.0), y], dim=-1)

    order = Order(replace(SMALLEST, tests=24, training=0, first_step=16))
    config = symmetry.stimuli(32)
    amounts = symmetry.transformations(config, 16)["velocity"]
    test = symmetry.tested(blind, config, "velocity", amounts, order)
    _, (low, high) = symmetry.gained(test)[2]
    assert test.amounts[2] == 0.5
    assert -1 < low < high < 1
    assert "yes" not in symmetry.verdicts(test)


def test_what_has_come_to_chance_is_not_called_respected() -> None:
    """At 18.5 px of 20 a growth of 0.7 px comes within 1 px of chance, and one of 7 px is still a failure."""
    results = growing(18.5)
    assert symmetry.why_no_verdicts(results) is None
    assert symmetry.verdicts(results.runs[0].tests[0]) == ["undecided", "yes", "no", "at chance", "no", "undecided"]
    assert symmetry.conclusions(results)[-1] == "No verdict, since the network is at chance there: scale (1.4)."


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        (growing(19.5), "No verdict: the network is at chance: without a transformation its mean error is "),
        (growing(35.0), "No verdict: the network is at chance: without a transformation its mean error is "),
        (growing(9.0, different=0), "No verdict: the network says the same of every recording."),
        (growing(9.0, different=2), "No verdict: the network says the same of every recording but 2."),
    ],
)
def test_a_network_at_chance_gets_no_row_of_yes_or_no(results: Results, reason: str, tmp_path: Path) -> None:
    (said,) = symmetry.conclusions(results)
    assert said.startswith(reason)
    report = drawing.write_report(symmetry.report, results, tmp_path).read_text("utf-8")
    assert verdicts_in(report) == {"", "no verdict"}
    assert "Respected in" not in report
    assert said in report
    with open(tmp_path / "summary.csv", newline="", encoding="utf-8") as lines:
        assert {row["verdict"] for row in csv.DictReader(lines)} == {"", "no verdict"}
    assert verdicts_in(symmetry.report(growing(9.0), tmp_path)) == {"", "yes", "no", "undecided"}


def test_an_untrained_network_gets_no_row_of_yes_or_no(tmp_path: Path) -> None:
    network = ScaleChannels(layers=TINY, seed=1)
    order = Order(replace(SMALLEST, tests=24, training=0, first_step=16))
    config = symmetry.stimuli(32)
    amounts = symmetry.transformations(config, 16)["rotation"]
    test = symmetry.tested(network, config, "rotation", amounts, order)
    results = replace(growing(9.0), runs=(Run("untrained", 0, (), 0.0, (test,)),))
    assert test.different == 24
    (said,) = symmetry.conclusions(results)
    assert said.startswith("No verdict: the network is at chance")
    assert verdicts_in(symmetry.report(results, tmp_path)) == {"", "no verdict"}


def test_of_two_networks_at_chance_neither_is_better() -> None:
    rng = np.random.default_rng(0)
    chance = rng.normal(20, 1, 40)
    errors = {name: (value + rng.normal(0, 0.1, 40))[None] for name, value in {"a": 40.0, "b": 30.0, "c": 5.0}.items()}
    curves = {name: Curve((1.0,), (each,), chance=(chance,)) for name, each in errors.items()}
    (lost,), (learnt,) = compared(curves["a"], curves["b"]), compared(curves["a"], curves["c"])
    assert lost.effects[0].difference_interval[0] > 9
    assert (lost.better, lost.at_chance, learnt.better, learnt.at_chance) == (False, True, True, False)
    assert lost.effects[0].d > LARGE
    assert (lost.large, learnt.large) == (False, True)
    assert surely([lost, learnt]) == "surely better at 1 and surely worse at 0, both at chance at 1, of 2"
    assert "| 1 (both at chance) |" in drawing.versus("s", "b", "a", [lost])


def test_a_network_at_chance_without_noise_is_not_said_to_be_doubled(computed: Path) -> None:
    results = read_results(computed / "noise")
    lost = tuple(
        replace(run, tests=tuple(replace(test, errors=tuple(np.array(test.chance) + 1)) for test in run.tests))
        for run in results.runs
    )
    said = noise.conclusions(replace(results, runs=lost))
    assert all("the network is at chance even without noise" in line for line in said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study"], "allowed: demonstration, timescale, covariance, noise, symmetry"),
        (["study", "sparse"], "study sparse: allowed: demonstration"),
        (["study", "colours"], "study colours: allowed:"),
        (["study", "symetry"], "study symetry: did you mean symmetry? allowed:"),
        (["study", "noise", "--from", "nowhere"], "allowed: the folder of a finished study"),
        (["study", "noise", "--model", "a:b"], "goes with the study symmetry"),
        (["study", "--checkpoint", "a.pt"], "goes with --model"),
        (["study", "noise", "--smoke", "--device", "nonsense"], "device 'nonsense': allowed: cpu, cuda"),
        (["study", "noise", "--smoke", "--minutes", "0"], "the same command continues"),
        (["study", "noise", "--smoke", "--minutes", "nan"], "minutes nan: allowed: a number, 0 or more"),
        (["study", "noise", "--smoke", "--quick"], "allowed: one of them"),
        (["study", "symmetry", "--smoke", "--seeds", "2"], "symmetry has one network"),
        (["study", "--from", "nowhere"], "allowed: the folder of a finished study"),
        (["study", "noise", "--smoke", "--seed", "1", "--out", "/dev/null/x"], "/dev/null/x: cannot be written"),
    ],
)
def test_mistakes_on_the_command_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, GerdError), result.output
    assert message in str(result.exception)


def test_a_folder_belongs_to_one_study_with_one_setting(computed: Path, tmp_path: Path) -> None:
    config = trials.stimuli(32)
    StudyFolder(tmp_path, "timescale", Order(SMALLEST, seed=1), config)
    StudyFolder(tmp_path, "timescale", Order(SMALLEST, seed=1), config)
    with pytest.raises(GerdError, match="was begun with seed = 1, and this is 2; give another folder with --out"):
        StudyFolder(tmp_path, "timescale", Order(SMALLEST, seed=2), config)
    with pytest.raises(GerdError, match="is of the study 'noise', and not of 'symmetry'"):
        read_results(computed / "noise", "symmetry")
    drawn = run_study(None, tmp_path / "drawn", computed / "noise", "full", {}, device="cpu", seed=0, minutes=None)
    assert "noise" in drawn.read_text("utf-8")
    (tmp_path / "results.json").write_text("{broken")
    with pytest.raises(GerdError, match=r"results\.json: cannot be read"):
        read_results(tmp_path, "timescale")
    (tmp_path / "results.json").write_text('{"study": "noise", "made": {}, "runs": {"trained with noise": {"0": {}}}}')
    with pytest.raises(
        GerdError, match=r"results\.json: is not what this version of gerd writes \(settings: Field req"
    ):
        read_results(tmp_path, "noise")


def test_what_made_the_numbers_stays_when_nothing_is_computed_anew(tmp_path: Path) -> None:
    config = trials.stimuli(32)
    order = Order(SMALLEST, seed=1)
    chance, test = summary([8.0, 9.0]), SweepResult("time scale", (1.0,), ((2.0, 3.0),))
    run = Run("one", 1, (0.5,), 5.0, (test,))
    first = StudyFolder(tmp_path, "timescale", order, config)
    made = first.finish(chance, [first.kept("one", Run, lambda: run)])
    assert made.runs == (run,)
    text = (tmp_path / "results.json").read_text("utf-8")
    (tmp_path / "results.json").write_text(
        text.replace(f'"device": "{made.made.device}"', '"device": "a large machine"')
    )
    again = StudyFolder(tmp_path, "timescale", order, config)
    kept = again.kept("one", Run, lambda: pytest.fail("it is kept"))
    assert again.finish(chance, [kept]).made.device == "a large machine"
    other = again.kept("two", Run, lambda: replace(run, model="two"))
    assert again.finish(chance, [kept, other]).made.device == made.made.device


@pytest.mark.long
def test_the_quick_study_finds_an_invariant_network(tmp_path: Path) -> None:
    """Ten minutes on two cores, with the conclusion of the full study."""
    report = run_study("timescale", tmp_path, None, "quick", {}, device="cpu", seed=0, minutes=None)
    results = read_results(tmp_path, "timescale")
    kept = trials.KEPT[0]
    for sweep in trials.SWEEPS:
        (found,) = findings.invariances(results, trials.INVARIANT, kept, sweep)
        assert found.ratio <= 2
        assert not found.at_chance
    matrix = findings.matrix_of(results.of(trials.named(trials.INVARIANT, kept))[0], trials.OWN_TIME)
    assert matrix.selected[:-1] == list(matrix.matched)[:-1]
    assert matrix.on_diagonal(matrix.selected, within=1) == 9  # cells of 4 px are coarse for 4 px per step
    for reference in (trials.EQUAL, trials.BASELINE):
        found = findings.versus(results, reference, trials.INVARIANT, kept, trials.OWN_TIME)
        assert findings.large(found) == 8
    assert "What has to hold" in report.read_text("utf-8")


def test_the_symmetry_study_takes_what_a_camera_does() -> None:
    """Of each amount the config's own, which changes nothing, first; then none of it, half of it and twice as much."""
    camera: dict[str, Any] = {
        "integrator": {"threshold": {"spread": 0.02}, "response": {"log": 0.1}, "refractory_us": 500},
        "noise": {"hot": {"share": 0.6}, "dead": 0.1},
        "readout": {"latency_us": 100.0, "jitter_us": 8.0, "events_per_ms": 50.0},
    }
    odd = symmetry.stimuli(32).with_values({"timing": "exact", "integrator": camera["integrator"]})
    odd = odd.with_values({"noise": camera["noise"], "readout": camera["readout"]})
    ideal, tested = symmetry.transformations(symmetry.stimuli(32), 16), symmetry.transformations(odd, 16)
    assert not ideal.keys() & symmetry.OF_CAMERA.keys()
    found = {kind: [g.amount for g in tested[kind]] for kind in tested.keys() - ideal.keys()}
    assert found == {
        "hot": [0.6, 0.0, 0.3, 1.0],
        "dead": [0.1, 0.0, 0.05, 0.2],
        "threshold_spread": [0.02, 0.0, 0.01, 0.04],
        "log_response": [0.1, 0.05, 0.2],
        "refractory": [500.0, 0.0, 250.0, 1000.0],
        "latency": [100.0, 0.0, 50.0, 200.0],
        "jitter": [8.0, 0.0, 4.0, 16.0],
        "bus": [20.0, 0.0, 10.0, 40.0],
    }
    scenes = draw(plan_of(odd), [0])
    for kind in found:
        assert tested[kind][0](scenes).pixel == scenes.pixel
