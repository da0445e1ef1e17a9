"""What the compiled code of the `cpu` backend takes: numbers and arrays that go together, as named tuples.

`room.py` makes them. From Python they are handed over as plain tuples, which `named` of `crossings.py` names again.
"""

from __future__ import annotations

from collections import namedtuple

Sensor = namedtuple("Sensor", "width height f")  # pixels, and the upsampling
# Pieces of outline, as in `rasterise.py`, from the farthest to the nearest: the sides of each are first … end - 1 of
# those in `unit` (4, sides), x and y of both ends in the unit frame; an ellipse is there if end > first. A convex piece
# has two slots in `Crossings.cols` from `slot` on, any other the number `listed` among those that have lists there.
# `offset` (pieces, 2) is how far right and down of its actor a piece lies, in pixels.
Pieces = namedtuple("Pieces", "first end unit is_ellipse convex slot listed actor offset intensity")
# Tables of `Thresholds`: a pixel's number is at `pixel · own`, where own is 1, or 0 if all pixels share one number.
# Then the table of `Response`, whose first count is `lowest`, and whether it is looked at; how long a pixel rests after
# an event, in steps or µs; and how many ON thresholds leak into an integrator per µs. The last three are for a
# stationary initial state: how many actors there are, and how many are darker than the background.
Model = namedtuple("Model", "on off least most own to_zero response lowest is_log rest leak stationary actors dark")
Noise = namedtuple("Noise", "shape has_shape drop_below background has_background")  # tables and a bound: `noise.py`
Chance = namedtuple("Chance", "seed index")  # of random words
Scene = namedtuple("Scene", "sensor pieces model noise chance")  # what stays as it is over a recording
Crossings = namedtuple("Crossings", "cols low high whole_low whole_high left right first columns")  # `find_crossings`
# What a recording carries from step to step: integrators (height, width), counts before shape noise, and lists of
# pixels: those that still hold more than a threshold, those that shape noise takes out of the last frame, with their
# counts, and the first pixels of blocks of v that have their initial state. `numbers` is how long the lists are. In
# exact timing with event noise, `fired` counts the events of each pixel. With a logarithmic response, `shown` has the
# counts that the integrators have seen last; if they rest, `ready` has the step or µs from which on each fires;
# with a leak, `leaked` says whether an ON event would be put down to it.
Pixels = namedtuple("Pixels", "v activation numbers pending hidden hidden_counts begun fired shown ready leaked")
# Since the step before: by how much (height, width + NEAR), bits for the pixels (height, words, one more than need be),
# and the pixel of each column. Room for one row (width + 2), which holds 0, with bits for its pixels; see `add_ends`.
# Room for the pixels that changed, as y · 2³² + x, and for the keys, within a step, of those that fire.
Changes = namedtuple("Changes", "change touched pixel_of rises marks listed fired")
Sums = namedtuple("Sums", "least most first second third whole")  # room for one number in each pixel row; see `move`
# Room for comparing two frames: pieces, crossings of what is seen of a piece in both, of what hides it, crossings in a
# sub-row (4, …), and one number in each pixel row; and for the sides of a piece, as in `outlines.py`.
Scratch = namedtuple("Scratch", "nearer seen_before seen_after cover_before cover_after lists sums sides")
# Room for a scattered noise: words (4, groups) for the counts of blocks, and the largest of four; the groups where
# something is picked; of the blocks where it is, words (4, blocks), number, and word for the count; keys of the picked
# pixels. The lists of groups and blocks have room for one more, which is put down in vain.
Draws = namedtuple("Draws", "counting largest group choosing block word picked")
Room = namedtuple("Room", "keys source")  # for events; in exact timing keys hold a flag, as in `exact.flagged`
Area = namedtuple("Area", "top bottom left right")  # pixel rows, and words of `touched` in them, each as first and end
