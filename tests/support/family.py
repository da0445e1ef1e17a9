"""A config with a sweep, comments and a glyph, for the tests of the page."""

TEXT = """\
# A family of two shapes.
seed: 4
sensor: {width: 30, height: 20}   # pixels
steps: 7
noise:
  background: 0.01   # a little

actors:
  - shape: {text: "7"}
    translation: {start: uniform, velocity: [1, 0], acceleration: 0}
    scale:
      start: {uniform: [6, 12]}
      acceleration: 0
  - shape: circle   # the nearer one
sweep:
  time_scale: [0.5, 2]
"""
