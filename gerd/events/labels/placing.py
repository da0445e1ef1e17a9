"""Outlines in the frame, compiled: the parameters of one recording in; coefficients and velocities of its pieces out.

These are the rules of `exactmath.sincos`, `parameters.affine`, `rasterise._sides`, `rasterise._ellipse` and
`derived.motion`, by the same names and with the same bits, for the labels of a recording: hundreds of calls of numpy
would take longer than all else about them. Compiled by `compiled.py`.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.rasterise import LARGEST_ENTRY
from gerd.geometry.exactmath import HALF_PI, OF_COSINE, OF_SINE
from gerd.geometry.parameters import ROTATION, SCALE_X, SCALE_Y, SHEAR, X, Y
from gerd.geometry.shapes import RADIUS


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
def put_side(T, side, result):
    """TOP, BOTTOM, X_TOP and SLOPE of a side, of which the ends in the unit frame are given."""
    a, b, x, c, d, y = T
    x0, y0 = (a * side[0] + b * side[1]) + x, (c * side[0] + d * side[1]) + y
    x1, y1 = (a * side[2] + b * side[3]) + x, (c * side[2] + d * side[3]) + y
    upward = y0 > y1
    x_top, x_bottom = (x1, x0) if upward else (x0, x1)
    top, bottom = (y1, y0) if upward else (y0, y1)
    rise = bottom - top
    result[0], result[1], result[2] = top, bottom, x_top
    result[3], result[4] = (x_bottom - x_top) / rise if rise > 0 else 0.0, 0.0


@inlined
def put_ellipse(T, is_there, result):
    """CENTRE_Y, REACH, CENTRE_X, TILT and WIDTH of the circle under T, if it is there."""
    a, b, x, c, d, y = T
    spread = c * c + d * d
    safe = spread if spread > 0 else 1.0
    result[0], result[1], result[2] = y, RADIUS * RADIUS * spread if is_there else 0.0, x
    result[3], result[4] = (a * c + b * d) / safe, abs(a * d - b * c) / safe


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
def place(truth, present, pieces, unit, f, coefficients, motion, T):
    """Put the outlines into `coefficients` (frames, entries, 5), as in `Borders`, and their velocities into `motion`.

    truth: (frames, actors, 3, 6), NaN for actors that are not `present`.
    pieces: `first`, `is_ellipse` and `actor`, and how far right and down of its actor each lies, in pixels.
    unit: (entries, 4): the ends of a side in the unit frame; of an ellipse, whether it is there.
    motion: (frames, pieces, 8): L, velocity and centre.
    T: (6, actors, frames): the entries of T. Returns whether one of them is no number, or too large to compute with.
    """
    first, is_ellipse, actor_of, shift = pieces
    wrong = False
    for i in range(len(truth)):
        for piece in range(len(actor_of)):
            actor, right, down = actor_of[piece], shift[piece, 0], shift[piece, 1]
            p, moves = truth[i, actor, 0], motion[i, piece]
            sine, cosine = sincos(p[ROTATION])
            entries = affine(p[X], p[Y], p[SCALE_X], p[SCALE_Y], sine, cosine, p[SHEAR])
            if not present[actor]:
                entries = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for k in range(6):
                T[k, actor, i] = entries[k]
                wrong |= not abs(entries[k]) <= LARGEST_ENTRY
            a, b, x, c, d, y = entries
            seen = (a * f, b * f, (x + right) * f, c * f, d * f, (y + down) * f)
            for entry in range(first[piece], first[piece + 1]):
                if is_ellipse[piece]:
                    put_ellipse(seen, unit[entry, 0] > 0, coefficients[i, entry])
                else:
                    put_side(seen, unit[entry], coefficients[i, entry])
            put_motion(p, truth[i, actor, 1], sine, cosine, moves)
            moves[6], moves[7] = p[X] + right, p[Y] + down
    return (np.int64(wrong),)


ENTRIES = (place,)
