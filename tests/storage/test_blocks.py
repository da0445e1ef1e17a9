"""Blocks of steps: any keys, in step and in exact timing, and any ground truth survive, bit for bit, in few bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gerd.storage.blocks import (
    BITS,
    LONGEST,
    PackedTruth,
    block_steps,
    events_size,
    in_order,
    pack_events,
    pack_truths,
    unpack_events,
)

SPANS = st.one_of(st.integers(1, 10**4), st.integers(1, 2**60))  # keys that a block's steps can have


@given(SPANS, st.integers(0, 2**60), st.integers(0, 400), st.integers(0, 2**32), st.data())
@example(2**60, 0, 1, 0, None)
@example(1, 2**60, 400, 0, None)  # all the same: many events at one tick
def test_keys_and_flags_survive(span: int, base: int, count: int, seed: int, data: st.DataObject | None) -> None:
    random = np.random.default_rng(seed)
    keys = base + np.sort(random.integers(0, span, count))
    flags = random.random(count) < 0.3
    packed, bits, count_bytes = pack_events(keys, flags, base, span)
    assert len(packed) == events_size(count, bits, count_bytes, span)
    how = (count, bits, count_bytes, base, span)
    found, found_flags = unpack_events(packed, *how, base, base + span)
    assert found.tolist() == keys.tolist()
    assert found_flags.tolist() == flags.tolist()
    if data is not None:  # of a window, its keys and perhaps some more
        start = base + data.draw(st.integers(0, span))
        stop = data.draw(st.integers(start, base + span))
        part, part_flags = unpack_events(packed, *how, start, stop)
        low, high = np.searchsorted(part, [start, stop])
        inside = (keys >= start) & (keys < stop)
        assert part[low:high].tolist() == keys[inside].tolist()
        assert part_flags[low:high].tolist() == flags[inside].tolist()
        assert len(part) == len(part_flags) <= count


def test_every_width_is_used_and_survives_at_its_ends() -> None:
    seen = set()
    for exponent in range(3, 58):
        span = 2**exponent
        keys = np.sort(np.concatenate([np.arange(min(span, 40)), span - 1 - np.arange(min(span, 40))]))
        packed, bits, count_bytes = pack_events(keys, keys % 3 == 0, 0, span)
        found, flags = unpack_events(packed, len(keys), bits, count_bytes, 0, span, 0, span)
        assert found.tolist() == keys.tolist()
        assert flags.tolist() == (keys % 3 == 0).tolist()
        seen.add(bits)
    assert seen == set(BITS)


def test_exact_timing_takes_three_bytes_more_or_less() -> None:
    """Three shapes on 300×300 pixels, a microsecond for each tick: half a byte of each event is time alone."""
    random, span = np.random.default_rng(0), 64 * 1000 * 2 * 300 * 300
    keys = np.sort(random.integers(0, span, 20_000))
    keys[100:110] = keys[100]  # events at one tick
    packed, bits, count_bytes = pack_events(keys, random.random(20_000) < 0.3, 0, span)
    assert len(packed) / len(keys) < 3.3
    found, _ = unpack_events(packed, len(keys), bits, count_bytes, 0, span, 0, span)
    assert found.tolist() == keys.tolist()
    assert in_order(found, 0, span, once=False)
    assert not in_order(found, 0, span, once=True)


@pytest.mark.parametrize("count", [1, 100])
def test_counts_that_are_not_those_of_the_events_are_refused(count: int) -> None:
    """Of one event, too, whose bits numpy would give to as many as are asked for."""
    keys = np.arange(count) * 7
    packed, *how = pack_events(keys, keys > 3, 0, 1000)
    forged = bytearray(packed)
    forged[0] += 1
    for data in (forged, packed + b"0", packed[:-1]):
        with pytest.raises(ValueError, match="has changed"):
            unpack_events(bytes(data), count, *how, 0, 1000, 0, 1000)


NUMBERS = st.floats(-1e299, 1e299, allow_subnormal=True)


def survives(truth: np.ndarray) -> int:
    """Packed alone and with others; the length of its bytes."""
    steps, actors = truth.shape[:2]
    (packed,) = pack_truths([truth])
    assert pack_truths([truth, truth[::-1], truth])[::2] == [packed, packed]
    found = PackedTruth([packed], steps, steps, actors, slice(0, steps))
    assert len(found) == steps
    assert found().tobytes() == truth.tobytes()
    part = PackedTruth([packed, packed], steps, 2 * steps, actors, slice(steps - 1, steps + 1))
    assert part().tobytes() == truth[[-1, 0]].tobytes()
    return len(packed)


@given(st.integers(1, 5), st.integers(0, 3), st.data())
def test_any_ground_truth_survives(steps: int, actors: int, data: st.DataObject) -> None:
    few = data.draw(st.lists(NUMBERS, min_size=1, max_size=4))
    chosen = data.draw(st.lists(st.sampled_from(few), min_size=steps * actors * 18, max_size=steps * actors * 18))
    survives(np.array(chosen).reshape(steps, actors, 3, 6))


def test_signs_of_zero_survive() -> None:
    truth = np.zeros((4, 1, 3, 6))
    truth[1:3] = -0.0
    survives(truth)


def test_forged_columns_are_refused() -> None:
    """Before they are unpacked, which is later: numbers of columns beyond the last, and of derivatives beyond it."""
    steps = 4
    (packed,) = pack_truths([moving(steps, np.ones((steps, 6)) * np.arange(steps)[:, None])])
    sizes = np.frombuffer(packed, "<u4", 3, 18 * 8)
    assert (sizes > 0).all()
    for behind, (number, first) in enumerate(zip(sizes, np.cumsum(sizes) - sizes, strict=True)):
        for column, sound in ((17 - 6 * behind, True), (18 - 6 * behind, False)):
            forged = bytearray(packed)
            at = 18 * 8 + 12 + 4 * int(first + number - 1)
            forged[at : at + 4] = column.to_bytes(4, "little")
            if sound:
                PackedTruth([bytes(forged)], steps, steps, 1, slice(0, steps))()
            else:
                with pytest.raises(ValueError, match="has changed"):
                    PackedTruth([bytes(forged)], steps, steps, 1, slice(0, steps))
    for data in (packed + b"0", packed[:-1]):
        with pytest.raises(ValueError, match="has changed"):
            PackedTruth([data], steps, steps, 1, slice(0, steps))


def moving(steps: int, acceleration: np.ndarray) -> np.ndarray:
    """(steps, 1, 3, 6): parameters that are pushed, by the sums that the conventions describe."""
    result = np.zeros((steps, 1, 3, 6))
    speed, place = np.full(6, 0.7), np.full(6, 40.3)
    for step in range(steps):
        result[step, 0] = place, speed, acceleration[step]
        place, speed = place + (speed + acceleration[step] / 2), speed + acceleration[step]
    return result


def test_motion_is_predicted_to_a_byte_and_rest_to_nothing() -> None:
    steps = 128
    random = np.random.default_rng(1)
    rest = survives(np.repeat(random.normal(size=(1, 1, 3, 6)), steps, axis=0) * [[1], [0], [0]])
    assert rest == 18 * 8 + 12
    uniform = survives(moving(steps, np.zeros((steps, 6))))
    assert uniform == 18 * 8 + 12 + 6 * 4 + 6 * (steps - 1)  # parameters
    pushed = survives(moving(steps, random.normal(size=(steps, 6)) * 0.01))
    assert pushed == 18 * 8 + 12 + 18 * 4 + 6 * (8 + 1 + 1) * (steps - 1)
    jumping = moving(steps, random.normal(size=(steps, 6)))
    jumping[60:, 0, 0] = 100 - jumping[60:, 0, 0]
    assert survives(jumping) > pushed


@pytest.mark.parametrize(
    ("steps", "events", "actors", "size"),
    [(128, 37_600, 3, 128), (60, 12_700, 3, 64), (1, 0, 0, 1), (3, 10**9, 1, 1), (10**6, 0, 0, LONGEST)],
)
def test_blocks_are_neither_long_nor_short(steps: int, events: int, actors: int, size: int) -> None:
    assert block_steps(steps, events, actors) == size
