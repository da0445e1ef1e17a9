"""What the paper says of its demonstration, thing by thing, and what the study takes it to be."""

from __future__ import annotations

from gerd.errors import counted
from gerd.studies.demonstration.trials import STEPS, TRAINED, choices_of, recordings_of
from gerd.studies.lab.drawing import table
from gerd.studies.lab.results import Results

SIZE = "size"  # of the study: a row that --quick and --smoke change


def taken(results: Results) -> str:
    """The table; its last column has the fields that --set replaces."""
    rows = [*_stimuli(results), *_recordings(results), *_network(results), *_training(results)]
    return table(["the paper, section 3.2", "this study", "field"], rows)


def _stimuli(results: Results) -> list[list[str]]:
    size = results.settings.size
    given = choices_of(results)
    return [
        [
            "a square",
            f"its side is {given.smallest:g} to {given.largest:g} of the frame's throughout; it starts anywhere",
            "`smallest`, `largest`",
        ],
        ["60 timesteps per sample", f"{STEPS} steps", ""],
        ["(not said: the frame)", f"{size.side}×{size.side} pixels", SIZE],
        [
            "translation at a constant 1px",
            f"±{given.velocity:g} px per step along each axis, each by chance; it turns back at the frame's borders",
            "`velocity`",
        ],
        [
            "scaling at a constant 1px",
            f"the side changes by ±{given.size_velocity:g} px per step. We take the 1px to be that of the translation: "
            "a side that changed by as much would run through its whole range twice in a recording",
            "`size_velocity`",
        ],
        [
            "test velocities 0.25 to 4",
            "the same scenes, s times as fast, translation and scaling alike, in as many steps",
            "",
        ],
        ["(not said: how many events)", f"{given.kept:.0%} of them are kept", "`kept`"],
        [
            "(not said: noise)",
            f"background noise, {given.background:g} per pixel and step, the same at every velocity",
            "`background`",
        ],
    ]


def _recordings(results: Results) -> list[list[str]]:
    size = results.settings.size
    at_one = len(recordings_of(size, TRAINED))
    parts = f"{size.training} for training, {size.validation} for validation, {at_one} for the test"
    return [
        ["2000 datapoints at s = 1: 70 %, 15 %, 15 %", parts, SIZE],
        ["400 datapoints at each other scale", f"{size.tests}, the same scenes at each", SIZE],
    ]


def _network(results: Results) -> list[list[str]]:
    given = choices_of(results)
    layers = results.settings.size.layers
    mus = ", ".join(f"{mu:g}" for mu in given.mus)
    return [
        ["convolutions 2 → 12 → 36 → 16 → 16 → 1", " → ".join(map(str, layers.widths)), SIZE],
        [
            "(not said: kernels and grids)",
            f"kernels of {_listed(layers.kernels)} pixels, pooling by {_listed(layers.pools)} before them; the first "
            "two layers begin as Gaussian derivatives, the others at random",
            SIZE,
        ],
        [
            "leaky integrators as activation functions, with a time constant μ",
            "one behind each convolution but the last, and a ReLU; the first adds events up (gain μ), the others have "
            "gain 1",
            "",
        ],
        ["the backbone is duplicated into five channels", "the channels have the same convolutions", ""],
        ["each its own time constants, factors of 2 apart", f"μ = {mus} steps", "`middle`"],
        ["(not said: whether μ is learnt)", given.time_constants, "`time_constants`"],
        [
            "distributions combined by a weighted sum",
            "each channel's heat map is softmaxed over the frame; the weights are learnt, add up to 1 and are equal at "
            "first. Another network has equal weights throughout",
            "",
        ],
        ["(x, y) as the expectation (center of mass)", "the same", ""],
        [
            "a baseline with a single scale channel",
            f"the same network with μ = {given.middle:g} alone; beyond the paper also with a half and a quarter of it",
            "`middle`",
        ],
    ]


def _training(results: Results) -> list[list[str]]:
    size = results.settings.size
    return [
        [
            "(not said: the training)",
            f"SmoothL1 of the place from step {size.first_step} on; AdamW, one cycle up to a rate of {size.rate:g}; "
            f"{counted(size.epochs, 'epoch')} of batches of {size.batch}, which are {size.updates} updates, for every "
            "network",
            "`--epochs`",
        ],
        ["a validation set", "after each epoch; the weights of the best one count", ""],
        [
            "(not said: the error)",
            f"the distance from the square's centre in pixels, the mean of a recording from step {size.first_step} on",
            SIZE,
        ],
        [
            "Cohen's d over 400 samples per scale",
            "of the errors of two networks, with the pooled SD over recordings, in each seed",
            "",
        ],
    ]


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
