"""`Scenes` to events: crossings of outlines with sub-rows, counts, integrators, noise.

Scenes go in; `Events` come out, in pieces, as keys. `definition` says what is right, densely and readably; `cpu` and
`cuda` give the same bits and skip what cannot change. Behind the crossings there are integers only.

To read in this order: `backends` (the choice), `rasterise` (outlines), `definition` (a pixel fires in
`integrate_and_fire`), `noise`, `keys` (an event as a number), `exact` (times inside a step); then the fast ones.
"""
