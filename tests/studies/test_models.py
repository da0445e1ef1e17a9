"""The networks: integrators against closed forms and SciPy, covariance of the channels, heat maps and shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from gerd.errors import GerdError
from gerd.studies.models import (
    TIME_BANK,
    TIME_CONSTANTS,
    Layers,
    PoseChannels,
    ScaleChannels,
    TimeChannels,
    TraceChannels,
    VelocityChannels,
    fused,
    gaussian_derivatives,
    integrate,
    moving_trace,
    place_of,
)

TINY = Layers((2, 4, 3, 1), (3, 3, 3), (2, 1, 1))


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def filtered(x: torch.Tensor, mu: float, trace: bool = False) -> torch.Tensor:
    """The leaky integrator over axis 1, as SciPy's recursive filter."""
    alpha = math.exp(-1 / mu)
    return torch.from_numpy(lfilter([1.0 if trace else 1 - alpha], [1.0, -alpha], x.numpy(), axis=1))


def integrated(x: torch.Tensor, mu: float, trace: bool = False) -> torch.Tensor:
    """One channel, over axis 1."""
    return integrate(x[:, None], torch.tensor([mu], dtype=torch.float64), trace)[:, 0]


@given(mu=st.floats(0.3, 50), steps=st.integers(1, 40), trace=st.booleans())
def test_the_integrator_is_the_filter_of_scipy(mu: float, steps: int, trace: bool) -> None:
    x = noise(2, steps, 3)
    bound = steps * 4 * np.finfo(np.float64).eps * float(x.abs().max()) * steps
    assert (integrated(x, mu, trace) - filtered(x, mu, trace)).abs().max() <= bound


def test_channels_are_integrated_each_with_its_own_time_constant() -> None:
    mus = torch.tensor([1.25, 5.0, 20.0]).double()
    x = noise(2, 3, 11, 4, 5)
    together = integrate(x, mus)
    for k, mu in enumerate(mus.tolist()):
        torch.testing.assert_close(together[:, k], filtered(x[:, k], mu), rtol=0, atol=1e-13)
    shared = integrate(x[:, :1], mus, trace=True)
    for k, mu in enumerate(mus.tolist()):
        torch.testing.assert_close(shared[:, k], filtered(x[:, 0], mu, trace=True), rtol=0, atol=1e-13)


def test_the_two_gains() -> None:
    """A constant input ends at 1 with unit gain; an impulse decays by α per step in the trace."""
    ones, impulse = torch.ones(1, 200, 1).double(), torch.zeros(1, 20, 1).double()
    impulse[:, 0] = 1
    alpha = math.exp(-1 / 5)
    assert integrated(ones, 5.0)[0, -1].item() == pytest.approx(1)
    known = torch.tensor([alpha**t for t in range(20)]).double()
    torch.testing.assert_close(integrated(impulse, 5.0, trace=True)[0, :, 0], known)


def test_gradients_flow_through_the_fast_integrator() -> None:
    x = noise(1, 1, 6, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: integrate(v, torch.tensor([2.0, 4.0]).double()), (x,))


def test_gaussian_derivatives() -> None:
    """Norm 1, with the symmetries of derivatives, and in the proportions of the Hermite polynomials."""
    kernels = gaussian_derivatives(9, (1.5,)).double()
    assert kernels.shape == (6, 9, 9)
    torch.testing.assert_close(kernels.flatten(1).norm(dim=1), torch.ones(6).double())
    bell, by_x, by_y, by_xx, by_xy, by_yy = kernels
    for odd in (by_x, by_xy):
        torch.testing.assert_close(odd, -odd.flip(1))
    torch.testing.assert_close(by_y, by_x.T)
    torch.testing.assert_close(by_yy, by_xx.T)
    x = torch.arange(9).double() - 4
    torch.testing.assert_close((by_x / bell)[4], (by_x / bell)[4, 3] * -x, atol=1e-6, rtol=1e-5)
    zero = (x * x / 1.5**2 - 1)[:4] * (by_xx / bell)[4, 4] / -1
    torch.testing.assert_close((by_xx / bell)[4, :4], zero, atol=1e-5, rtol=1e-5)


def test_the_place_of_a_heat_map() -> None:
    heat = torch.zeros(4, 8)
    heat[1, 6] = 1.0
    assert place_of(heat, width=80, height=40).tolist() == [65.0, 15.0]
    assert place_of(torch.full((4, 8), 1 / 32), width=80, height=40).tolist() == [40.0, 20.0]


def test_fusion_is_a_weighted_sum_of_the_channels_distributions() -> None:
    logits = noise(2, 3, 4, 5, 6, seed=3)
    reading = fused(logits, 60, 50, "evidence")
    joint = torch.softmax(logits.permute(0, 2, 1, 3, 4).flatten(2), dim=-1).unflatten(2, (3, 5, 6))
    torch.testing.assert_close(reading.place, place_of(joint.sum(2), 60, 50))
    torch.testing.assert_close(reading.weights, joint.sum((-1, -2)).permute(0, 2, 1))
    each = torch.softmax(logits.flatten(-2), dim=-1).unflatten(-1, (5, 6))
    torch.testing.assert_close(reading.places, place_of(each, 60, 50))
    uniform = fused(logits, 60, 50, "uniform")
    torch.testing.assert_close(uniform.place, place_of(each.mean(1), 60, 50))
    assert (uniform.weights == 1 / 3).all()


def test_a_weighted_sum_has_the_weights_that_it_is_given() -> None:
    """The centre of mass of 0.7·p₁ + 0.2·p₂ + 0.1·p₃, the maps added up pixel by pixel."""
    logits = torch.randn(2, 3, 4, 5, 6)
    shares = torch.tensor([0.7, 0.2, 0.1])
    each = torch.softmax(logits.flatten(-2), dim=-1).unflatten(-1, (5, 6))
    reading = fused(logits, 60, 50, "weighted", shares.log() + 3)
    torch.testing.assert_close(reading.place, place_of((each * shares[:, None, None, None]).sum(1), 60, 50))
    torch.testing.assert_close(reading.weights, shares[:, None].expand(2, 3, 4))


def test_scale_channels_learn_the_weights_of_their_sum_unless_told_otherwise() -> None:
    network = ScaleChannels(layers=TINY)
    assert network.fusion == "weighted"
    assert network.shares() == pytest.approx([0.2] * 5)  # at first
    optimiser = torch.optim.SGD(network.parameters(), lr=1.0)
    network.read(torch.rand(1, 9, 2, 16, 16) < 0.2).place.sum().backward()
    optimiser.step()
    assert network.shares() != pytest.approx([0.2] * 5, abs=1e-4)
    assert sum(network.shares()) == pytest.approx(1)
    assert ScaleChannels(fusion="uniform", layers=TINY).shares() == ()
    assert TimeChannels(layers=TINY).fusion == "evidence"
    some = TimeChannels([1.0, 2.0, 4.0], fusion="weighted", layers=TINY)
    reading = some.read(torch.rand(1, 9, 2, 16, 16) < 0.2, [0, 2])
    torch.testing.assert_close(reading.weights, torch.full((1, 2, 9), 0.5))


def test_the_network_has_the_layers_of_the_paper() -> None:
    network = ScaleChannels()
    assert [tuple(weight.shape) for weight in network.weights] == [
        (12, 2, 7, 7),
        (36, 12, 7, 7),
        (16, 36, 9, 9),
        (16, 16, 9, 9),
        (1, 16, 9, 9),
    ]
    assert TIME_CONSTANTS == (1.25, 2.5, 5.0, 10.0, 20.0)
    bank = gaussian_derivatives(7)
    for number in (0, 1):  # every receptive field is one of the bank, up to its sign and size
        fields = network.weights[number].detach().flatten(2)
        alike = (torch.nn.functional.normalize(fields, dim=-1) @ bank.flatten(1).T).abs().amax(-1)
        torch.testing.assert_close(alike, torch.ones_like(alike))
    frames = torch.rand(2, 7, 2, 32, 24) < 0.05
    reading = ScaleChannels(layers=TINY).read(frames)
    assert reading.place.shape == (2, 7, 2)
    assert reading.places.shape == (2, 5, 7, 2)
    torch.testing.assert_close(reading.weights.sum(1), torch.ones(2, 7))
    assert (reading.place >= 0).all()
    assert (reading.place <= torch.tensor([24, 32])).all()


def test_a_single_channel_is_that_channel_of_the_larger_network() -> None:
    frames = torch.rand(2, 9, 2, 16, 16) < 0.1
    many, one = ScaleChannels(layers=TINY, seed=4), ScaleChannels([5.0], layers=TINY, seed=4)
    torch.testing.assert_close(one(frames), many.read(frames).places[:, 2])


def test_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = ScaleChannels(layers=TINY, seed=7).weights[2]
    torch.manual_seed(2)
    assert torch.equal(first, ScaleChannels(layers=TINY, seed=7).weights[2])
    assert not torch.equal(first, ScaleChannels(layers=TINY, seed=8).weights[2])


def covariance_gap(mu: float) -> tuple[float, float]:
    """How far s·f(s·t) at μ / s, and at μ, is from f(t) at μ: of logits, in units of their spread."""
    s, steps = 2, int(4 * mu)
    network = ScaleChannels([mu, mu / s], layers=TINY, seed=1).double()
    for bias in network.biases:  # so that the amplitude matters in every layer
        bias.data = torch.linspace(-0.3, 0.3, len(bias)).double()

    def frames(t: torch.Tensor) -> torch.Tensor:
        wave = torch.sin(4 * t / mu)[:, None, None, None] + torch.linspace(0, 3, 2 * 8 * 8).reshape(2, 8, 8)
        return (torch.sin(wave) + 1.2).double()[None] / mu

    with torch.no_grad():
        slow = network.logits(frames(torch.arange(steps) + 0.5))[0, 0, s - 1 :: s]  # the end of each pair of steps
        fast = network.logits(s * frames((torch.arange(steps // s) + 0.5) * s))[0]
    matched, unmatched = ((fast[k] - slow).abs().max() / slow.std() for k in (1, 0))
    return float(matched), float(unmatched)


def test_the_channel_with_mu_over_s_sees_at_scale_s_what_mu_sees_at_1() -> None:
    """The difference is that of the grid of steps: it halves with the step. Without the match it stays."""
    coarse, fine = covariance_gap(40.0), covariance_gap(80.0)
    assert fine[0] == pytest.approx(coarse[0] / 2, rel=0.2)
    assert coarse[0] < 0.1
    assert fine[1] > 10 * fine[0]


HALVES = st.integers(-6, 6).map(lambda k: k / 2)


@given(velocity=st.tuples(HALVES, HALVES))
def test_a_moving_trace_of_what_moves_with_it_stays_sharp(velocity: tuple[float, float]) -> None:
    """A dot that moves by the channel's velocity leaves one dot with the sum of a geometric series."""
    x = torch.zeros(1, 5, 41, 41, 1)
    places = [tuple(20 + math.floor(part * step + 0.5) for part in velocity) for step in range(5)]
    for step, (right, down) in enumerate(places):
        x[0, step, down, right, 0] = 1
    trace = moving_trace(x, 5.0, velocity)[0, ..., 0]
    alpha = math.exp(-1 / 5)
    for step, (right, down) in enumerate(places):
        assert trace[step, down, right].item() == pytest.approx(sum(alpha**k for k in range(step + 1)), rel=1e-6)
        assert int((trace[step] > 0).sum()) == 1


def test_a_moving_channel_sees_neither_polarity_nor_how_many_events_there_are() -> None:
    """Both depend on the velocity in the sensor's frame, and a boost changes them. Where the events are it does see."""
    network, steps = VelocityChannels([(0.5, 0)], layers=TINY), torch.tensor([2, 4])
    x = noise(1, 5, 8, 8, 2).abs() + 0.1
    seen = network.traces(x, [0], steps)
    for same in (x.flip(-1), 7 * x):
        torch.testing.assert_close(network.traces(same, [0], steps), seen, rtol=1e-4, atol=0)
    assert not torch.allclose(network.traces(x.flip(2), [0], steps), seen, rtol=0.01)
    nothing = network.traces(torch.zeros_like(x), [0], steps)
    torch.testing.assert_close(nothing, torch.zeros_like(nothing))


def test_a_channel_adds_what_whole_pixels_leave_out_and_half_a_step() -> None:
    network = VelocityChannels([(0.3, -1.25)], layers=TINY)
    steps = torch.tensor([0, 1, 2, 7])
    moved = network.in_frame(torch.zeros(1, 1, 4, 2), [0], steps, (16, 16))[0, 0]
    for k, step in enumerate(steps.tolist()):
        for axis, speed in enumerate((0.3, -1.25)):
            left = speed * step - math.floor(speed * step + 0.5)
            assert moved[k, axis].item() == pytest.approx(speed / 2 + left, abs=1e-6)


def test_the_bank_is_half_an_octave_fine_and_wider_than_what_is_tested() -> None:
    assert len(TIME_BANK) == 13
    np.testing.assert_allclose(np.diff(np.log2(TIME_BANK)), 0.5)
    assert TIME_BANK[6] == 5
    assert TIME_BANK[0] < 5 / 4
    assert TIME_BANK[-1] > 5 * 4


@given(mu=st.floats(0.4, 20), merged=st.integers(1, 6))
def test_the_trace_of_steady_events_does_not_depend_on_the_step(mu: float, merged: int) -> None:
    """Events at a constant rate, of which each step shows as many as `merged` steps: the trace at μ / merged is μ."""
    steps = math.ceil(40 * mu / merged) + 1
    x = torch.full((1, steps, 2, 2, 2), float(merged), dtype=torch.float64)
    last = torch.tensor([steps - 1])
    trace = TimeChannels([mu / merged], layers=Layers((2, 3, 1), (3, 3), (1, 1))).traces(x, [0], last)
    torch.testing.assert_close(trace, torch.full_like(trace, mu), rtol=1e-9, atol=0)


def test_a_trace_is_that_of_sums_of_pixels() -> None:
    x = noise(1, 7, 8, 6, 2)
    network = TimeChannels([3.0, 6.0], layers=TINY)
    found = network.traces(x, [1], torch.tensor([2, 6]))[0, 0]
    sums = x.unflatten(2, (4, 2)).unflatten(4, (3, 2)).sum((3, 5))
    known = filtered(sums, 6.0, trace=True)[0] * 6.0 * (1 - math.exp(-1 / 6.0))
    torch.testing.assert_close(found, known[[2, 6]])


def time_gap(mu: float) -> tuple[float, float]:
    """How far s·f(s·t) at μ / s, and at μ, is from f(t) at μ: of logits, in units of their spread."""
    s, steps = 2, int(4 * mu)
    network = TimeChannels([mu, mu / s], layers=TINY, seed=1).double()
    wave = torch.linspace(0, 3, 2 * 8 * 8).reshape(2, 8, 8)

    def frames(t: torch.Tensor) -> torch.Tensor:
        return (torch.sin(torch.sin(4 * t / mu)[:, None, None, None] + wave) + 1.2).double()[None] / mu

    with torch.no_grad():
        slow = network.logits(frames(torch.arange(steps) + 0.5), [0])[0, 0, s - 1 :: s]  # the end of each pair of steps
        fast = network.logits(s * frames((torch.arange(steps // s) + 0.5) * s))[0]
    matched, unmatched = ((fast[k] - slow).abs().max() / slow.std() for k in (1, 0))
    return float(matched), float(unmatched)


def test_time_channels_are_covariant_to_the_second_order_of_the_step() -> None:
    """A step of half the size leaves a quarter of the difference, against half of it with integrators in each layer."""
    coarse, fine = time_gap(20.0), time_gap(40.0)
    assert fine[0] == pytest.approx(coarse[0] / 4, rel=0.2)
    assert fine[0] < covariance_gap(40.0)[0] / 10
    assert fine[1] > 100 * fine[0]


@pytest.mark.parametrize(
    "network",
    [
        TimeChannels([2.5, 5.0, 10.0], layers=TINY, seed=3),
        VelocityChannels([(0, 0), (0.5, 0), (1, -1.5)], layers=TINY, seed=3),
        PoseChannels([(1, 0), (1.4, 0), (1, 30)], layers=TINY, seed=3),
    ],
    ids=lambda network: type(network).__name__,
)
def test_a_part_of_the_channels_and_steps_says_what_it_says_in_the_whole(network: TraceChannels) -> None:
    frames = torch.rand(2, 9, 2, 16, 12, generator=torch.Generator().manual_seed(0)) < 0.2
    with torch.no_grad():
        whole, part = network.read(frames), network.read(frames, [2, 0], torch.tensor([3, 8]))
        at = network.read_at(frames, torch.tensor([3, 8]))
    assert len(network) == 3
    torch.testing.assert_close(part.places, whole.places[:, [2, 0]][:, :, [3, 8]])
    torch.testing.assert_close(part.evidence, whole.evidence[:, [2, 0]][:, :, [3, 8]])
    torch.testing.assert_close(at.place, whole.place[:, [3, 8]])
    torch.testing.assert_close(at.weights, whole.weights[:, :, [3, 8]])


def test_a_quarter_turn_is_exact() -> None:
    """What a channel says of a frame, the one that is turned by 90° says of the turned frame, turned."""
    network = PoseChannels([(1, 0), (1, 90)], layers=TINY, seed=2)
    frames = torch.rand(2, 5, 2, 16, 16, generator=torch.Generator().manual_seed(0)) < 0.2
    turned = torch.rot90(frames, -1, (-2, -1))  # clockwise on the screen
    with torch.no_grad():
        before, after = network.read(frames).places[:, 0] - 8, network.read(turned).places[:, 1] - 8
    torch.testing.assert_close(after, torch.stack([-before[..., 1], before[..., 0]], -1), atol=1e-4, rtol=0)


def blob(factor: float, degrees: float, side: int = 64) -> torch.Tensor:
    """Frames of an oblong Gaussian right of and above the middle, scaled and turned clockwise about the middle."""
    x, y = torch.meshgrid(torch.arange(side) + 0.5 - side / 2, torch.arange(side) + 0.5 - side / 2, indexing="xy")
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    u, v = (cosine * x + sine * y) / factor, (-sine * x + cosine * y) / factor  # taken back
    return torch.exp(-((u - 8) ** 2) / 30 - (v + 5) ** 2 / 12).expand(1, 3, 2, side, side)


@given(factor=st.floats(0.7, 1.6), degrees=st.floats(-180, 180))
def test_pose_channels_are_covariant_up_to_the_grid(factor: float, degrees: float) -> None:
    network = PoseChannels([(1, 0), (factor, degrees)], layers=TINY, seed=2)
    with torch.no_grad():
        still, moved = blob(1, 0), blob(factor, degrees)
        seen = network.traces(still.permute(0, 1, 3, 4, 2), [0], torch.tensor([2]))
        posed = network.traces(moved.permute(0, 1, 3, 4, 2), [1], torch.tensor([2]))
        away = network.traces(moved.permute(0, 1, 3, 4, 2), [0], torch.tensor([2]))
    spread = seen.std()
    assert float((posed - seen).abs().max() / spread) < 0.25
    if abs(degrees) > 20 or not 0.85 < factor < 1.2:
        assert float((away - seen).abs().max() / spread) > 0.5


def test_time_constants_are_learnt_with_their_ratios_kept() -> None:
    network = ScaleChannels(learnt=True, fusion="uniform", layers=TINY)
    assert network.learnt() == (5.0, 5.0)
    assert ScaleChannels(layers=TINY).learnt() == ()
    network.read(torch.rand(1, 9, 2, 16, 16) < 0.2).place.sum().backward()
    assert network.log_factors is not None
    assert network.log_factors.grad is not None
    assert (network.log_factors.grad != 0).all()
    network.log_factors.data = torch.tensor([math.log(2), 0.0])
    np.testing.assert_allclose(network.learnt(), (10, 5))
    np.testing.assert_allclose(network.time_constants(0).detach(), 2 * np.array(TIME_CONSTANTS), rtol=1e-6)


def test_velocity_channels_are_covariant_under_a_boost() -> None:
    """What a channel at rest says of a scene, the channel with the boost's velocity says of the boosted one, moved."""
    layers = Layers((2, 4, 3, 1), (3, 3, 3), (1, 1, 1))
    network = VelocityChannels([(0, 0), (2, 1)], mu=3.0, layers=layers, seed=2)
    still = torch.zeros(1, 6, 2, 48, 48)
    still[:, :, :, 10:16, 12:17] = (torch.rand(1, 6, 2, 6, 5, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    boosted = torch.stack([still[:, t].roll((t, 2 * t), (-2, -1)) for t in range(6)], dim=1)
    with torch.no_grad():
        a, b = network.logits(still)[0, 0], network.logits(boosted)[0, 1]
    for t in range(6):
        torch.testing.assert_close(b[t, 4:40, 4:40].roll((-t, -2 * t), (0, 1))[2:20, 2:20], a[t, 6:24, 6:24])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScaleChannels([]), "allowed: positive time constants"),
        (lambda: ScaleChannels([-1.0]), "allowed: positive time constants"),
        (lambda: ScaleChannels(fusion="best"), "allowed: weighted, uniform, evidence"),  # type: ignore[arg-type]
        (lambda: Layers((2, 3), (3, 3), (1, 1)), "one kernel and one pool for each layer"),
        (lambda: Layers((2, 3, 1), (3, 4), (1, 1)), "odd sizes"),
        (lambda: VelocityChannels([(math.inf, 0)]), "pairs (x, y) of pixels per step"),
        (lambda: TimeChannels([0.0]), "allowed: positive time constants"),
        (lambda: PoseChannels([(0.0, 0)]), "pairs of a factor, up to 4.0, and degrees"),
        (lambda: PoseChannels([]), "one or more"),
        (lambda: ScaleChannels(layers=TINY)(torch.zeros(2, 3, 16, 16)), "allowed: (batch, steps, 2, height, width)"),
    ],
)
def test_mistakes_are_named(make: object, message: str) -> None:
    with pytest.raises(GerdError) as caught:
        make()  # type: ignore[operator]
    assert message in str(caught.value)
