"""Text to `Config`: what a user writes, checked, frozen and explained.

YAML goes in, a frozen `Config` comes out, or a `ConfigError` that names file, line, path, value and what is allowed.
Nothing is drawn or simulated here. A new field needs its model, its unit and its range; the schema, docs/config.md and
the messages follow from them.

To read in this order: `load` (text → `document` → `Config`), `config` with its parts `sensor`, `actor`, `transform` and
`values`, `base` and `problems` (errors), `sweep` (members).
"""
