"""`Config` to `Plan`: what the scenes of a config are drawn from, as plain frozen data.

`make` reads a config, once; `plan` and `values` are what it makes. `scene` and
`events` see no config.
"""
