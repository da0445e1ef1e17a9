"""`Scenes` to events: crossings of outlines, integrate-and-fire pixels, noise, in three backends with the same bits.

Everything behind the crossings is integer arithmetic; only the times of exact timing are worked out in float64.

    keys, shared        what an event is as one integer; what a backend gives
    rasterise, exact    outlines in the frame; the instants of exact timing
    pixel               the numbers behind the noises
    definition          the backend `torch`: what happens, written to be read, on any device; and its stages
    cpu, cuda           the fast backends: compiled by numba, and by Triton
    labels              masks, flow, and the causes of events
    backends            the choice of a backend
"""
