"""What a config's Python functions give: each is sampled once, and its values then stand for it.

A config in; the same config out, with the values of its functions, at all times that its recordings need, in its field
`functions`. So a config that was sampled says all of it: it can be written, compared and simulated without the code.
Functions with more values than `MOST_HELD` are run whenever they are needed; the field has a sha256 of their values.

Times are in steps of the motion's own time, at which a function is called with whole numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from gerd.config.actor import TRANSFORMATIONS, Actor
from gerd.config.document import PlainData
from gerd.config.samples import MOST_HELD, MOST_LOOKED_AT, Fingerprint, FunctionValues, Sampled
from gerd.config.trust import trusted_function
from gerd.config.values import LARGEST_NUMBER, Function, UserFunction
from gerd.errors import GerdError

if TYPE_CHECKING:
    from gerd.config.config import Config

Array = NDArray[np.float64]

PIECE = 2**16  # values that are worked out together
KEPT_CONFIGS = 1024  # that are not sampled again
DECIDE_TIMES = ("steps", "time_scale", "timing", "integrator", "transform")  # which times are needed


@dataclass(frozen=True)
class _Use:
    """A place in a config where a function gives an acceleration."""

    function: Function
    path: str
    pairs: bool  # whether it may give a pair (x, y)


def values_at(config: Config, use_of: Function, path: str, pairs: bool, t: Array) -> Array:
    """(times,) or (times, 2): what a function of a sampled config gives at whole times `t`, which ascend by 1."""
    known = config.functions.get(use_of.function)
    use = _Use(use_of, path, pairs)
    if isinstance(known, Sampled):
        _check_pairs(config, use, known.numbers)
        begin, end = int(t[0]) - known.first, int(t[-1]) + 1 - known.first
        if begin >= 0 and end <= len(known.numbers):
            return known.numbers[begin:end]
    return _evaluated(config, use, _callable(config, use), t)


def functions_named(config: Config) -> set[str]:
    """The functions that recordings of a config need, of any member."""
    return {use.function.function for use in _uses(config)}


def to_store(config: Config) -> Config:
    """The config as a dataset has it: sampled, and without the functions whose values it has.

    If it has those of all functions, workers need neither the code nor trust in it.
    """
    result = config.sampled_whole
    known = {name for name, values in result.functions.items() if isinstance(values, Sampled)}
    run = [use for use in _uses(result) if use.function.function not in known]
    for use in run:
        if use.function._callable is not None:
            _check_importable(use)
    if not known:
        return result
    actors = _changed_actors(result, lambda f: Function(function=f.function) if f.function in known else f)
    result = result.with_functions(result.functions, actors)
    return result if run else result.trusted(None)


def differences_of_functions(there: PlainData, here: PlainData) -> Iterator[str]:
    """What sets the `functions` of two resolved configs apart at the times that both have; plain data, even wrong."""
    there, here = (data if isinstance(data, dict) else {} for data in (there, here))
    for name in [name for name in there if name in here]:
        with suppress(ValidationError):
            theirs, ours = Sampled.model_validate(there[name]), Sampled.model_validate(here[name])
            first = max(theirs.first, ours.first)
            both = zip(theirs.numbers[first - theirs.first :], ours.numbers[first - ours.first :], strict=False)
            for t, (a, b) in enumerate(both, first):
                if not np.array_equal(a, b):
                    gives = f"it gave {_in_words(a)} at t = {t} there and gives {_in_words(b)} here"
                    yield f"the function {name} has changed: {gives}"
                    break
            continue
        if there[name] != here[name]:
            yield f"the function {name} has changed, by the sha256 of its values"


def _in_words(value: ArrayLike) -> str:
    numbers = [f"{number:g}" for number in np.atleast_1d(value)]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _check_importable(use: _Use) -> None:
    """Workers import a function whose values are not kept, and so does whoever makes the dataset again."""
    module, _, name = use.function.function.partition(":")
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not use.function._callable:
        raise GerdError(
            f"{use.path}: {use.function.function} gives more values than a dataset keeps ({MOST_HELD} numbers), and "
            "cannot be imported by its name; put the function into a module"
        )


@lru_cache(maxsize=KEPT_CONFIGS)
def sample(config: Config, *, whole: bool) -> Config:
    """The config with what its functions give at the times that its recordings need, and at no others.

    whole: with a fingerprint of those with too many values, which takes a while. What cannot be known, because the
    user does not trust the config, is left as it is.
    """
    if whole:
        config = config.sampled
    uses = _uses(config)
    if not uses:
        return config.with_functions({}) if config.functions else config
    names = _own_names(uses)
    times = _times_of_family(config)
    table: dict[str, FunctionValues] = {}
    for name, of_name in _by_name(uses, names).items():
        known = _known(config, of_name, times, MOST_HELD // len(set(names.values())), whole)
        if known is not None:
            table[name] = known
    if all(use.function._callable is None or use.function._sampled for use in uses):
        return config if table == config.functions else config.with_functions(table)
    return config.with_functions(table, _changed_actors(config, lambda f: _marked(f, names)))


def _key(function: Function) -> tuple[str, int]:
    """What tells functions apart: two that are handed over in Python can have one name."""
    return function.function, 0 if function._callable is None else id(function._callable)


def _own_names(uses: Sequence[_Use]) -> dict[tuple[str, int], str]:
    """A name of its own for each function: those that share one are numbered from the second on."""
    result: dict[tuple[str, int], str] = {}
    for use in uses:
        if (key := _key(use.function)) not in result:
            name = key[0]
            numbers = itertools.count(2)
            while name in result.values():
                name = f"{key[0]}.{next(numbers)}"
            result[key] = name
    return result


def _marked(function: Function, names: Mapping[tuple[str, int], str]) -> Function:
    """A function under its own name; one that was handed over in Python is known by it from now on."""
    if (key := _key(function)) not in names:
        return function
    result = Function(function=names[key])
    result._callable = function._callable
    result._handed_over = function._handed_over
    result._sampled = True
    return result


def _by_name(uses: Sequence[_Use], names: Mapping[tuple[str, int], str]) -> dict[str, list[_Use]]:
    result: dict[str, list[_Use]] = {}
    for use in uses:
        result.setdefault(names[_key(use.function)], []).append(use)
    return result


def _known(config: Config, uses: list[_Use], times: range, most: int, whole: bool) -> FunctionValues | None:
    """What is to be known of a function at these times; None if it is run anew each time that it is needed."""
    first = uses[0]
    for written in (_written(config, first.function), _inherited(config, first.function, times)):
        if isinstance(written, Sampled) and _covers(written.times, times):
            for use in uses:
                _check_pairs(config, use, written.numbers)
            return written.within(times)
    written = _written(config, first.function)
    looked_at = times[:MOST_LOOKED_AT]
    if isinstance(written, Fingerprint) and written.times == looked_at:
        return written
    if first.function._callable is None and config.origin.trust is None:
        return written
    if times.start < -MOST_LOOKED_AT:
        return None  # no recording has so long a warm-up: who draws one says so
    fits = times.stop - times.start <= most
    if not fits and not whole:
        return None
    use = next((use for use in uses if use.pairs), first)
    numbers = _in_pieces(config, use, _callable(config, use), looked_at)
    if fits:
        held = np.concatenate(list(numbers))
        for other in uses:
            _check_pairs(config, other, held)
        if held.size <= most:
            return Sampled.of(times.start, held)
        numbers = iter([held])
    return Fingerprint(first=times.start, count=len(looked_at), sha256=_sha256(numbers)) if whole else None


def _written(config: Config, function: Function) -> FunctionValues | None:
    """What the config itself says of a function; one that was just handed over in Python is none that it names."""
    own = function._callable is None or function._sampled
    return config.functions.get(function.function) if own else None


def _inherited(config: Config, function: Function, times: range) -> FunctionValues | None:
    """What the family of a member knows: it has sampled the function for all members."""
    family = config.family
    if family is config or not _covers(_times_of_family(family), times):
        return None
    uses = _uses(family)
    name = _own_names(uses).get(_key(function))
    return None if name is None else family.sampled.functions.get(name)


def _covers(there: range, wanted: range) -> bool:
    return there.start <= wanted.start and wanted.stop <= there.stop


@lru_cache(maxsize=KEPT_CONFIGS)
def _uses(config: Config) -> tuple[_Use, ...]:
    """Where the recordings of a config, of any member, need a function."""
    if not config.sweep:
        return tuple(_uses_in(config))
    swept = [
        path
        for path, values in config.sweep.items()
        if path.startswith("actors") and (path.endswith(".function") or any(map(_mentions_function, values)))
    ]
    if not swept and not _uses_in(config):
        return ()
    first = {path: values[0] for path, values in config.sweep.items()}
    rows = [first, *({**first, path: value} for path in swept for value in config.sweep[path][1:])]
    return tuple(use for row in rows for use in _uses_in(config.with_values(row)))


def _uses_in(config: Config) -> list[_Use]:
    result = []
    for entry in sorted({entry for entry, _ in config.cast}):
        for part in TRANSFORMATIONS:
            written = getattr(config.actors[entry], part).acceleration
            for value in written if isinstance(written, tuple) else (written,):
                if isinstance(value, Function):
                    pairs = part == "translation" and value is written
                    result.append(_Use(value, f"actors.{entry}.{part}.acceleration", pairs))
    return result


def _mentions_function(value: object) -> bool:
    """Whether plain data has a function somewhere."""
    if isinstance(value, dict):
        return "function" in value or any(map(_mentions_function, value.values()))
    return isinstance(value, list | tuple) and any(map(_mentions_function, value))


@lru_cache(maxsize=KEPT_CONFIGS)
def _times_of_family(config: Config) -> range:
    """The times that the recordings of any member need."""
    swept = {path: values for path, values in config.sweep.items() if path.split(".")[0] in DECIDE_TIMES}
    if not swept:
        return own_times(config)
    rows = itertools.product(*swept.values())
    needed = [own_times(config.with_values(dict(zip(swept, row, strict=True)))) for row in rows]
    return range(min(each.start for each in needed), max(each.stop for each in needed))


def own_times(config: Config) -> range:
    """The k for which recordings need the acceleration on [k, k + 1) of own time, from the warm-up on.

    In exact timing integrators run in own time, and one unit more is looked at: see `events/exact.py`.
    """
    config = config.in_steps
    warmup = config.integrator.warmup
    last = config.steps - 1
    rate = config.fastest
    first = min(math.floor((-warmup - 1) * rate), 0)
    stop = math.floor(last * rate) + 1
    if config.timing == "exact":
        first = min(first, -warmup)
        path = config.origin.path
        end = stop if path is None else min(stop, path.steps - 1)
        stop = max(stop, end + 1)
    return range(first, stop)


def _callable(config: Config, use: _Use) -> UserFunction:
    """The function itself, if the user lets it run; an error if it gives other values than the config has."""
    known = _written(config, use.function)
    function = trusted_function(config, use.function, use.path, _why_run(known))
    if known is not None and use.function._callable is None and not _still_gives(config, use, known):
        message = f"gives other values than those that the config has of it, from t = {known.first} on: it has changed"
        raise config.error(use.path, message, use.function.function)
    return function


def _why_run(known: FunctionValues | None) -> str:
    """What to say of a function that has to be run although it was sampled."""
    if isinstance(known, Sampled):
        return f"is known from t = {known.first} to {known.times[-1]} only; for other times this config "
    return "gives more values than are kept; to be simulated this config " if known is not None else ""


@lru_cache(maxsize=KEPT_CONFIGS)
def _still_gives(config: Config, use: _Use, known: FunctionValues) -> bool:
    """Whether a function gives what the config has of it."""
    pieces = _in_pieces(config, use, trusted_function(config, use.function, use.path), known.times)
    if isinstance(known, Fingerprint):
        return _sha256(pieces) == known.sha256
    return np.array_equal(np.concatenate(list(pieces)), known.numbers)


def _in_pieces(config: Config, use: _Use, function: UserFunction, times: range) -> Iterator[Array]:
    for begin in range(0, len(times), PIECE):
        yield _evaluated(config, use, function, np.array(times[begin : begin + PIECE], np.float64))


def _evaluated(config: Config, use: _Use, function: UserFunction, t: Array) -> Array:
    """(times,) or (times, 2): what a function gives at times `t`."""
    try:
        values = [function(time) for time in t.tolist()]
        both = use.pairs and all(np.shape(each) == (2,) for each in values)
        numbers = np.array([[float(part) for part in each] if both else float(each) for each in values])
    except (Exception, SystemExit) as error:  # whatever a user's function may raise
        allowed = f"allowed: a function of t that gives a number{' or a pair (x, y)' if use.pairs else ''}"
        message = f"failed: {type(error).__name__}: {error}; {allowed}"
        raise config.error(use.path, message, use.function.function) from error
    return usable(config, numbers, t, use.path, use.function.function)


def usable(config: Config, numbers: Array, t: Array, path: str, value: object) -> Array:
    """Accelerations (times,) or pairs (times, 2) at times `t`, if they are numbers that a path can be made of."""
    bad = ~(np.abs(numbers) <= LARGEST_NUMBER)
    if bad.any():
        first = t[bad.reshape(len(t), -1).any(axis=1)][0]
        message = f"is {numbers[bad][0]:g} at t = {first:g}; allowed: numbers within ±{LARGEST_NUMBER:g}"
        raise config.error(path, message, value)
    return numbers + 0.0  # a zero has no sign


def _check_pairs(config: Config, use: _Use, numbers: Array) -> None:
    if numbers.ndim == 2 and not use.pairs:
        message = "gives a pair (x, y); allowed: a function of t that gives a number"
        raise config.error(use.path, message, use.function.function)


def _sha256(pieces: Iterator[Array]) -> str:
    result = hashlib.sha256()
    for piece in pieces:
        result.update(piece.astype("<f8").tobytes())
    return result.hexdigest()


def _changed_actors(config: Config, change: Callable[[Function], Function]) -> tuple[Actor, ...]:
    """The actors with other functions in the place of theirs."""

    def changed(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return change(value) if isinstance(value, Function) else value

    actors = []
    for actor in config.actors:
        parts = {name: getattr(actor, name) for name in TRANSFORMATIONS}
        moved = {
            name: part.model_copy(update={"acceleration": changed(part.acceleration)}) for name, part in parts.items()
        }
        actors.append(actor.model_copy(update=moved))
    return tuple(actors)
