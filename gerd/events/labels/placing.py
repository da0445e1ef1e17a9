"""T and its motion, compiled: the parameters of one recording in; T of its actors and velocities of its pieces out.

These are the rules of `exactmath.sincos`, `parameters.affine` and `derived.motion`, by the same names and with the same
bits, for the labels of a recording: hundreds of calls of numpy would take longer than all else about them. Compiled by
`compiled.py`.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.rasterise import LARGEST_ENTRY
from gerd.geometry.exactmath import HALF_PI, OF_COSINE, OF_SINE
from gerd.geometry.parameters import ROTATION, SCALE_X, SCALE_Y, SHEAR, X, Y


@inlined
def sincos(angle):
    """Sine and cosine of an angle in radians."""
    quarter = np.rint(angle / HALF_PI)
    rest = angle - quarter * HALF_PI
    rest = rest if abs(rest) < 1.0 else np.nan
    square, sine, cosine = rest * rest, 1.0, 1.0
    for factor in OF_SINE:
        sine = 1.0 - square * factor * sine
    sine = rest * sine
    for factor in OF_COSINE:
        cosine = 1.0 - square * factor * cosine
    turn = quarter - np.floor(quarter * 0.25) * 4.0
    swap = turn == 1.0 or turn == 3.0
    one, other = (cosine, sine) if swap else (sine, cosine)
    return -one if turn >= 2.0 else one, -other if turn == 1.0 or turn == 2.0 else other


@inlined
def affine(x, y, scale_x, scale_y, sine, cosine, shear):
    """The six entries a, b, x, c, d, y of T."""
    across = shear * scale_y
    a, b = cosine * scale_x, cosine * across - sine * scale_y
    return a, b, x, sine * scale_x, sine * across + cosine * scale_y, y


@inlined
def put_motion(parameters, speeds, sine, cosine, result):
    """The four numbers of L, and the velocity of the centre."""
    along, down = speeds[SCALE_X] / parameters[SCALE_X], speeds[SCALE_Y] / parameters[SCALE_Y]
    across, spin = speeds[SHEAR] + parameters[SHEAR] * (down - along), speeds[ROTATION]
    mixed, half = across * sine * cosine, (along - down) * sine * cosine
    result[0] = finite(along * cosine * cosine + down * sine * sine - mixed)
    result[1] = finite(half + across * cosine * cosine - spin)
    result[2] = finite(half - across * sine * sine + spin)
    result[3] = finite(along * sine * sine + down * cosine * cosine + mixed)
    result[4], result[5] = speeds[X], speeds[Y]


@inlined
def finite(number):
    return number if abs(number) < np.inf else np.nan


@compiled
def place(truth, present, actor_of, offset, maps, motion):
    """Put the entries of T into `maps` (frames, actors, 6), and how pieces move into `motion` (frames, pieces, 8).

    truth: (frames, actors, 3, 6), NaN for actors that are not `present`.
    actor_of, offset: the actor of each piece, and how far right and down of it the piece lies, in pixels.
    motion: L, velocity and centre.
    Returns whether an entry of T is no number, or too large to compute with.
    """
    wrong = False
    for i in range(len(truth)):
        for actor in range(len(present)):
            p = truth[i, actor, 0]
            sine, cosine = sincos(p[ROTATION])
            entries = affine(p[X], p[Y], p[SCALE_X], p[SCALE_Y], sine, cosine, p[SHEAR])
            if not present[actor]:
                entries = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for k in range(6):
                maps[i, actor, k] = entries[k]
                wrong |= not abs(entries[k]) <= LARGEST_ENTRY
        for piece in range(len(actor_of)):
            p, moves = truth[i, actor_of[piece], 0], motion[i, piece]
            sine, cosine = sincos(p[ROTATION])
            put_motion(p, truth[i, actor_of[piece], 1], sine, cosine, moves)
            moves[6], moves[7] = p[X] + offset[piece, 0], p[Y] + offset[piece, 1]
    return (np.int64(wrong),)


ENTRIES = (place,)
