"""Arithmetic in t written in a config, such as `0.1 * sin(t / 10)`: checked, then evaluated on arrays.

Nothing is handed to Python's `eval`: the text is parsed, and only the arithmetic named here is walked, so a
config cannot reach a name, an attribute or an import. The functions are those of `exactmath`, so an
expression gives the same bits everywhere.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gerd.errors import counted
from gerd.geometry import exactmath

LONGEST = 500  # characters
HIGHEST_POWER = 16
DEEPEST = 250  # operations inside each other
LARGEST_LITERAL = 1e300  # of a number that is written

Numbers = NDArray[np.float64] | np.float64  # of each time, or of all

FUNCTIONS: dict[str, tuple[int, Callable[..., Numbers]]] = {  # name: (number of arguments, function)
    "sin": (1, lambda x: exactmath.sincos(x)[0]),
    "cos": (1, lambda x: exactmath.sincos(x)[1]),
    "exp": (1, exactmath.exp),
    "log": (1, exactmath.log),
    "sqrt": (1, np.sqrt),
    "abs": (1, np.abs),
    "floor": (1, np.floor),
    "sign": (1, np.sign),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
}
NAMES = {"pi": 2 * exactmath.HALF_PI}
ALLOWED = (
    f"allowed: numbers, t, {', '.join(NAMES)}, + - * / %, ** with a whole number up to {HIGHEST_POWER}, "
    f"and {', '.join(FUNCTIONS)}"
)
_BINARY: dict[type, Callable[[Numbers, Numbers], Numbers]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
}


def check(text: str) -> None:
    """Raise ValueError, saying what is allowed, unless `text` is an expression this module can evaluate."""
    with np.errstate(all="ignore"):
        _walk(_parsed(text), np.zeros(1))


def evaluate(text: str, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of the expression at each time of `t`; ValueError where it is not a finite number."""
    with np.errstate(all="ignore"):
        value = np.broadcast_to(np.asarray(_walk(_parsed(text), t), np.float64), t.shape)
    if not np.isfinite(value).all():
        raise ValueError(f"is not a finite number at t = {t[~np.isfinite(value)].flat[0]:g}")
    return value + 0.0  # a zero has no sign


def _parsed(text: str) -> ast.AST:
    if len(text) > LONGEST:
        raise ValueError(f"is {len(text)} characters long; at most {LONGEST} are allowed")
    try:
        with warnings.catch_warnings(action="ignore"):  # such as of "1if t else 2"
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"is not an expression; {ALLOWED}") from None


def _walk(node: ast.AST, t: NDArray[np.float64], depth: int = 0) -> Numbers:
    if depth > DEEPEST:
        raise ValueError(f"is nested too deeply; at most {DEEPEST} levels are allowed")
    depth += 1
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if abs(number) < LARGEST_LITERAL:
                return np.float64(number)
            raise ValueError(f"contains a number that is too large; allowed: below {LARGEST_LITERAL:g}")
        case ast.Name(id="t"):
            return t
        case ast.Name(id=name) if name in NAMES:
            return np.float64(NAMES[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, t, depth)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _walk(operand, t, depth)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            if not isinstance(power, bool) and 0 <= power <= HIGHEST_POWER:
                base = _walk(left, t, depth)
                result = np.ones_like(t)
                for _ in range(power):
                    result = result * base
                return result
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_walk(left, t, depth), _walk(right, t, depth))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            count, function = FUNCTIONS[name]
            if len(args) == count:
                return function(*(_walk(argument, t, depth) for argument in args))
            raise ValueError(f"{name} takes {counted(count, 'argument')}, not {len(args)}; {ALLOWED}")
    raise ValueError(f"contains {_written(node)!r}; {ALLOWED}")


def _written(node: ast.AST) -> str:
    try:
        return ast.unparse(node)[:40]
    except RecursionError:
        return "…"
