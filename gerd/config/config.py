"""The config: everything that a recording depends on besides its index, as one frozen model.

Each field's unit, default and range stand here, in `actor.py` and in `sensor.py`, and nowhere else: `gerd schema`,
docs/config.md and the error messages are made from these models. `load.py` makes a `Config` from text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, ValidationInfo, model_validator

from gerd.bounds import FINEST, LARGEST_KEY, MOST_ACTORS
from gerd.config.actor import Actor, start_outside
from gerd.config.base import Model, all_invalid, invalid, problem, problems_of, refuse, replaced
from gerd.config.camera import Camera, or_its_name, refuse_name, with_named_camera
from gerd.config.digest import digest_of_config
from gerd.config.document import UNNAMED, Document, PlainData, dotted, dump_yaml
from gerd.config.functions import functions_named, sample
from gerd.config.members import checked_sweep
from gerd.config.problems import explain
from gerd.config.samples import FunctionValues
from gerd.config.sensor import Integrator, Noise, Readout, Sensor
from gerd.config.sweep import member, member_count, member_number, relatives
from gerd.config.transform import ScaleTime, Transform
from gerd.config.trust import modules_beside
from gerd.config.values import FunctionName, Speed, TimeScale
from gerd.errors import ConfigError, GerdError, Problem, counted, shorten
from gerd.reading import reading

NOT_SET = ("sweep", "functions")  # of a member: its family has them
MOST_TRANSFORMS = 32
MOST_MEMBERS = 100_000
OF_FUNCTIONS = ("digest", "sampled", "sampled_whole")  # worked out from what functions give, and kept
WORKED_OUT = ("cast", "cheap_hash", *OF_FUNCTIONS)  # from the fields, and kept
SLOWEST, FASTEST = 1e-9, 1e6  # own time per step, all time scales together
MOST_ENDS = 10_000_000  # ends of steps in the warm-up of exact timing, at each of which shape noise is drawn


@dataclass(frozen=True)
class Origin:
    """Where a config comes from, which is no part of what it says."""

    text: str | None = None  # as the user wrote it, with overrides as comments
    document: Document = field(default_factory=lambda: Document(None))  # where each field was written
    directory: str | None = "."  # where masks are looked up; None: the config is resolved, and names no files
    trust: str | None = None  # the folder to import functions from, if the user trusts the config
    code: tuple[tuple[str, str], ...] = ()  # the modules of its functions in that folder, each with its sha256
    family: Config | None = None  # of a member: the config whose fields were set, sweep and all
    labels: Mapping[str, Any] = field(default_factory=dict)  # of a member: path → value of the fields that were set
    path: Config | None = None  # of a config with `keep: path` in steps: as it was, in the path's own time


class Config(Model):
    """Everything that a recording depends on, besides its index."""

    part = "the config itself"
    seed: int = Field(0, strict=True, ge=0, lt=2**64, description="seed of all random numbers")
    sensor: Sensor = Sensor()
    camera: Camera = Field(Camera(), json_schema_extra=or_its_name)
    steps: int = Field(60, strict=True, ge=1, le=100_000_000, description="number of steps of a recording")
    step_us: int = Field(1000, strict=True, ge=1, le=10**9, description="microseconds per step, in exported times")
    time_scale: Speed = Field(
        1.0, description="run the same motion so many times as fast; together with those in transform, 1e-9 to 1e6"
    )
    timing: Literal["step", "exact"] = Field(
        "step",
        description="step: a pixel fires at most once per step; exact: whenever it passes its threshold, at that time",
    )
    upsampling: int = Field(8, strict=True, ge=1, le=FINEST, description="sub-pixels per pixel, along each axis")
    integrator: Integrator = Integrator()
    noise: Noise = Noise()
    readout: Readout = Readout()
    transform: tuple[Transform, ...] = Field(
        (), max_length=MOST_TRANSFORMS, description="transformations of the whole scene, in this order"
    )
    actors: Annotated[
        tuple[Actor, ...],
        Field(max_length=MOST_ACTORS, description="shapes and their motion, from the farthest to the nearest"),
        BeforeValidator(lambda value: _few(value)),
    ]
    sweep: dict[str, Annotated[tuple[PlainData, ...], Field(min_length=1)]] = Field(
        {}, description="values by the path of their field; several paths make a grid"
    )
    functions: dict[FunctionName, FunctionValues] = Field(
        {}, description="values of the Python functions that the config names; GERD writes them, you need not"
    )

    _origin: Origin = PrivateAttr(default_factory=Origin)

    def __init__(self, *unnamed: object, **fields: object):
        if unnamed:
            how = "allowed: fields by name, as in Config(actors=[…]); a file: gerd.load, text or a dict: gerd.parse"
            raise ConfigError([Problem("Config", how, value=shorten(unnamed[0]))])
        try:
            with reading():
                super().__init__(**fields)
        except ValidationError as error:
            raise explain(error, Document(fields, "Config")) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # `of` need not go through it

    @classmethod
    def of(cls, data: object, origin: Origin) -> Config:
        """The config that plain data describes; pydantic's ValidationError if it is wrong."""
        with reading():
            return cls.model_validate(data, context={"origin": origin})

    @property
    def origin(self) -> Origin:
        """Where the config comes from."""
        private = self.__pydantic_private__  # pydantic would look for `_origin` everywhere else first
        assert private is not None
        origin: Origin = private["_origin"]
        return origin

    @property
    def name(self) -> str:
        """The name of the file that it comes from, or of the dataset that it describes; empty without either."""
        source = self.origin.document.source
        return "" if source == UNNAMED else PurePath(source).name

    @property
    def family(self) -> Config:
        """The config that describes the sweep, if this is a member of one; else the config itself."""
        return self.origin.family or self

    @property
    def ticks(self) -> int:
        """How many different times a step's events can have."""
        return self.step_us if self.timing == "exact" else 1

    @property
    def initial(self) -> float | Literal["uniform", "stationary"]:
        """The state of integrators at the start: uniform, stationary or a number of thresholds."""
        if self.integrator.initial != "usual":
            return self.integrator.initial
        return "stationary" if self.timing == "exact" else "uniform"

    @cached_property
    def cast(self) -> tuple[tuple[int, int], ...]:
        """For each actor of a recording its entry in `actors`, and which of the entry's copies it is."""
        return tuple((entry, copy) for entry, actor in enumerate(self.actors) for copy in range(actor.most))

    def trusted(self, folder: str | None) -> Config:
        """This config, with functions that may be imported from `folder`; with None they may not run."""
        result = self.model_copy()
        for name in OF_FUNCTIONS:  # which may run now, or no longer
            result.__dict__.pop(name, None)
        code = () if folder is None else modules_beside(functions_named(self), folder)
        result._origin = replace(self._origin, trust=folder, code=code)
        return result

    @property
    def sampled(self) -> Config:
        """This config with the values of its Python functions, which stand for them: see `functions.py`.

        Without those of functions that have too many, or that may not run.
        """
        return self._sampled("sampled", whole=False)

    @property
    def sampled_whole(self) -> Config:
        """`sampled` with a fingerprint of functions with too many values: what is written and compared."""
        return self._sampled("sampled_whole", whole=True)

    def _sampled(self, name: str, whole: bool) -> Config:
        """Kept with the config, however many others are sampled: a function may give other values the next time."""
        if name not in self.__dict__:
            result = sample(self, whole=whole)
            if result is self:  # which cannot be kept: two such configs could not be compared
                return self
            self.__dict__[name] = result
        kept: Config = self.__dict__[name]
        return kept

    def with_functions(self, values: Mapping[str, FunctionValues], actors: tuple[Actor, ...] | None = None) -> Config:
        """This config with other values of its functions, and with actors that differ in their functions only."""
        changed: dict[str, object] = {"functions": dict(values)}
        if actors is not None:
            changed["actors"] = actors
        result = super().model_copy(update=changed)
        for name in WORKED_OUT:
            result.__dict__.pop(name, None)
        return result

    @model_validator(mode="before")
    @classmethod
    def _camera_named(cls, data: object) -> object:
        return with_named_camera(data) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _starts_inside(self) -> Config:
        size = (self.sensor.width, self.sensor.height)
        problems = []
        for i, actor in enumerate(self.actors):
            move = actor.translation
            path = ("actors", i, "translation")
            if move.border == "bounce" and 2 * move.margin >= min(size):
                allowed = f"allowed: less than half of the smaller frame side, {min(size) / 2:g}"
                problems.append(problem(allowed, (*path, "margin"), move.margin))
            elif move.border != "free":
                ranges = [(move.margin, side - move.margin) for side in size]
                problems += start_outside(move.start, ranges, "inside the frame", (*path, "start"))
        refuse(problems)
        return self

    @model_validator(mode="after")
    def _not_too_many(self) -> Config:
        if len(self.cast) > MOST_ACTORS:
            raise invalid(f"with repeat makes {len(self.cast)} actors; at most {MOST_ACTORS} are allowed", "actors")
        most = LARGEST_KEY // (2 * self.sensor.width * self.sensor.height * self.ticks)
        if self.steps > most:
            raise invalid(f"allowed with exact timing of {self.step_us} µs on this sensor: up to {most}", "steps")
        return self

    @model_validator(mode="after")
    def _one_hot_event_per_step(self) -> Config:
        hot = self.noise.hot
        fastest = 1e6 / self.step_us
        if hot.share > 0 and hot.rate_hz > fastest:
            message = f"allowed with steps of {self.step_us} µs, in each of which it fires once: up to {fastest:g}"
            raise invalid(message, "noise", "hot", "rate_hz", value=hot.rate_hz)
        return self

    @model_validator(mode="after")
    def _camera_sees_the_scene(self) -> Config:
        """Brightness has a logarithm where one is taken, what leaks in is fired, and late events have times."""
        refuse(self.integrator.too_dark([actor.intensity for actor in self.actors]))
        unit_us = None if self.timing == "step" else self.step_us / max(self.fastest, SLOWEST)
        refuse(self.integrator.fills_up(self.step_us, unit_us))
        if self.timing == "step":
            refuse(self.readout.without_times())
        return self

    @model_validator(mode="after")
    def _speed_bounded(self) -> Config:
        """Own times, and in exact timing microseconds from the warm-up on, are numbers that can be computed with."""
        rate = self.fastest
        if not SLOWEST <= rate <= FASTEST:
            scales_time = any(isinstance(part, ScaleTime) for part in self.transform)
            what = f"with those in transform makes a time scale of {rate:g}; allowed" if scales_time else "allowed"
            written = self.time_scale.factor if isinstance(self.time_scale, TimeScale) else self.time_scale
            raise invalid(f"{what}: from {SLOWEST:g} to {FASTEST:g}", "time_scale", value=written)
        if self.timing == "exact":
            self._warmup_bounded((self.integrator.warmup + 1) / rate)
        return self

    def _warmup_bounded(self, steps: float) -> None:
        """In exact timing the warm-up is in own time, and takes `steps` steps."""
        path = ("integrator", "warmup")
        value = self.integrator.warmup
        if steps * self.step_us > LARGEST_KEY:
            message = f"at this time scale, takes {steps * self.step_us:.3g} µs; allowed: up to {LARGEST_KEY:.3g}"
            raise invalid(message, *path, value=value)
        if self.noise.shape > 0 and steps > MOST_ENDS:
            message = f"at this time scale, takes {steps:.3g} steps of shape noise; allowed: up to {MOST_ENDS}"
            raise invalid(message, *path, value=value)

    @model_validator(mode="after")
    def _torus_stays(self) -> Config:
        moving = any(not isinstance(part, ScaleTime) for part in self.transform)
        wrapping = [i for i, actor in enumerate(self.actors) if actor.translation.border == "wrap"]
        if moving:
            message = "a transformation would move the seams of the torus; allowed with transform: bounce, free"
            refuse([problem(message, ("actors", i, "translation", "border"), "wrap") for i in wrapping])
        return self

    @model_validator(mode="after")
    def _path_fits(self) -> Config:
        """A path that is kept leaves steps to record, and noises that are probabilities."""
        place = ("time_scale", "factor")
        try:
            _ = self.in_steps
        except ValidationError as error:
            raise all_invalid(
                problem(f"makes {dotted(part['loc'])} {shorten(part['input'])}; {part['type']}", place, self.rate)
                for part in problems_of(error)
            ) from None
        return self

    @model_validator(mode="after")
    def _sweep_sound(self, info: ValidationInfo) -> Config:
        """Every value of every swept path gives a good config by itself, and so does every member of a grid."""
        if info.context:
            self._origin = info.context["origin"]
        members = member_count(self)
        if members > MOST_MEMBERS:
            raise invalid(f"makes {members} members; at most {MOST_MEMBERS} are allowed", "sweep", value=self.sweep)
        sweep = checked_sweep(self, members)
        object.__setattr__(self, "sweep", sweep)  # frozen for everybody else
        return self

    def with_values(self, values: Mapping[str, object]) -> Config:
        """A member of the family: the fields at the given paths replaced, and no sweep of its own; checked anew."""
        data: object = {**self._fields, "sweep": {}}
        for path, value in values.items():
            refuse_name(path, value)
            data = replaced(data, path, value, NOT_SET)
        labels = {**self._origin.labels, **values}
        return Config.of(data, replace(self._origin, text=None, family=self.family, labels=labels, path=None))

    def replace(self, **values: object) -> Config:
        """This config with other values, by the paths of their fields; the sweep stays, and a member stays one.

        `config.replace(steps=3, **{"noise.background": 0.01, "sweep.time_scale": [1, 2]})`
        """
        try:
            if self.family is not self:
                return self.with_values(values)
            data: Any = self._fields
            for path, value in values.items():
                first, dot, swept = path.partition(".")
                if first == "sweep" and dot:  # a swept path is one key
                    data = {**data, "sweep": {**data["sweep"], swept: value}}
                else:
                    data = replaced(data, path, value)
            return Config.of(data, replace(self._origin, text=None, path=None))
        except ValidationError as error:
            raise explain(error, Document(None, "replace")) from None

    def member(self, which: int | Mapping[str, object]) -> Config:
        """The config of one member of the sweep: its number, or swept values that only it has."""
        return member(self, member_number(self, which))

    @property
    def _fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in Config.model_fields}

    @property
    def rate(self) -> float:
        """How many times as fast as in its own time the motion is shown, before any transformation."""
        return self.time_scale.factor if isinstance(self.time_scale, TimeScale) else self.time_scale

    @property
    def fastest(self) -> float:
        """How much of its own time passes in a step: the time scale, times all those in `transform`."""
        return self.rate * math.prod(part.time_scale for part in self.transform if isinstance(part, ScaleTime))

    @property
    def in_steps(self) -> Config:
        """The config that is run: `time_scale` is a number; length, warm-up and noise are those of the recording.

        They differ from what is written only with `keep: path`. What draws, stores or shows a recording has this one.
        """
        if not isinstance(self.time_scale, TimeScale):
            return self
        data: dict[str, object] = {**self._fields, "sweep": {}, "time_scale": self.rate}
        origin = replace(self._origin, text=None, family=self.family)
        if self.time_scale.keep == "steps":
            return Config.of(data, origin)
        shorter = self.time_scale.intervals
        integrator = dict(self.integrator)
        data["steps"] = shorter(self.steps - 1) + 1
        if self.timing == "step":  # exact timing counts the warm-up in own time
            data["integrator"] = {**integrator, "warmup": shorter(self.integrator.warmup)}
        data["noise"] = self.noise.times(self.rate)
        return Config.of(data, replace(origin, path=self))

    def __hash__(self) -> int:
        return self.cheap_hash

    @cached_property
    def cheap_hash(self) -> int:
        fields = {**self._fields, "sweep": tuple(self.sweep), "functions": tuple(self.functions)}
        return hash(tuple(fields.values()))

    def error(self, path: str, message: str, value: object) -> ConfigError:
        """What is wrong with the field at `path`, found only after the config was checked."""
        place = tuple(int(part) if part.isdecimal() else part for part in path.split("."))
        return ConfigError([self._origin.document.problem(place, message, shorten(value))])

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Config:
        result = super().model_copy(update=update, deep=deep)
        if update:  # what was worked out or written before no longer holds
            for name in WORKED_OUT:
                result.__dict__.pop(name, None)
            result._origin = replace(self._origin, text=None, family=None, labels={}, path=None)
        return result

    @property
    def text(self) -> str:
        """The YAML the config was read from, with overrides as comments; or one that gives the same config."""
        return self.resolved_yaml() if self._origin.text is None else self._origin.text

    def resolved(self) -> dict[str, PlainData]:
        """All fields with their values as plain data that needs no other file: masks, paths and glyphs as polygons.

        Python functions are named, and `functions` has their values, unless the user does not let them run. Only a
        swept path or glyph is left as it was written, because it is a label, too.
        """
        return self.sampled_whole.model_dump(mode="json")

    def resolved_yaml(self) -> str:
        return dump_yaml(self.resolved())

    def to_yaml(self) -> str:
        """Text that gives the same recordings, sweep and all: the fields that differ from their defaults.

        Masks, paths and glyphs are polygons, and Python functions have their values, as in `resolved`.
        """
        if self.family is not self and relatives(self.family):
            message = "is a member whose starts depend on the whole sweep; write config.family.to_yaml()"
            raise GerdError(f"{self._origin.document.source}: {message}")
        return self._short_yaml()

    def _short_yaml(self) -> str:
        return dump_yaml((self._origin.path or self).sampled_whole.not_at_defaults())

    def not_at_defaults(self) -> dict[str, PlainData]:
        """The fields that differ from their defaults, at every depth, as plain data that gives the same config."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def __repr__(self) -> str:
        members = member_count(self)
        swept = f", a sweep of {counted(members, 'member')}" if self.sweep else ""
        size = f"{self.sensor.width}×{self.sensor.height}, {self.steps} steps, {counted(len(self.actors), 'actor')}"
        return f"<Config {f'{self.name}: ' if self.name else ''}{size}{swept}, seed {self.seed}, {self.digest[:8]}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """What it says, as text, for notebooks."""
        return f"<div>{escape(repr(self)[1:-1])}</div><pre>{escape(self._origin.text or self._short_yaml())}</pre>"

    @cached_property
    def digest(self) -> str:
        """sha256 over what is not at its default: equal for equal recordings, however the text was written."""
        return digest_of_config(self)


def _few(actors: object) -> object:
    """Refuse too many actors before each of them is looked at."""
    if isinstance(actors, list | tuple) and len(actors) > MOST_ACTORS:
        raise invalid(f"allowed: at most {MOST_ACTORS} items, not {len(actors)}", value=actors)
    return actors
