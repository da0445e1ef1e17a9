"""`Plan` and index to `Scenes`: every random choice of a recording's content is made here.

A plan and recording indices go in, and numbers come out: events are made from these alone. Every random word is a
function of (seed, index, purpose, slot, step). New randomness takes a new purpose or slot, so that the draws that exist
stay as they are.

To read in this order: `draw`, `motion` and `sampling` (an actor's draws), `philox` (random words), `scenes` (the
result), `transformation` (of whole scenes).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["transformation"]
)  # as gerd.transformation, at its first use
