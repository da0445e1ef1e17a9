"""`Config` and index to `Scenes`: every random choice of a recording's content is made here.

A config and recording indices go in, and numbers come out: events are made from these alone. What comes after the
events has the config beside the numbers, to say what a recording is and to draw its scene again. Every random word is a
function of (seed, index, purpose, slot, step). New randomness takes a new purpose or slot, so that the draws that exist
stay as they are.

To read in this order: `draw`, `motion` and `sampling` (an actor's draws), `philox` (random words), `scenes` (the
result), `transformation` (of whole scenes).
"""
