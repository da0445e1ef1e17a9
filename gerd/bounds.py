"""Bounds that several packages count on: a config beyond them is refused, so that later stages need not check again."""

MOST_ACTORS = 64  # of a recording; each actor's random numbers depend on this one
DIMMEST, BRIGHTEST = -8.0, 8.0  # intensity
GROWTH = (1e-6, 1e6)  # smallest and largest factor by which a size grows per step
FINEST = 256  # upsampling
LARGEST_HELD = 2**30 - 1  # what an integrator can hold; the `cpu` backend keeps it in 32 bits with 2**30 added
LARGEST_KEY = 2**62  # of an event; while events are sorted, their keys hold the background flag as one bit more
