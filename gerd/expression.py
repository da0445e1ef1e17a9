"""Arithmetic in t written in a config, such as `0.1 * sin(t / 10)`: checked, then evaluated on arrays.

Nothing is handed to Python's `eval`: the text is parsed, and only the arithmetic named here is walked, so a
config cannot reach a name, an attribute or an import. The functions are those of `exactmath`, so an
expression gives the same bits everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd import exactmath

LONGEST = 500  # characters
HIGHEST_POWER = 16

FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # name: (number of arguments, function)
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
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
}


def check(text: str) -> None:
    """Raise ValueError, saying what is allowed, unless `text` is an expression this module can evaluate."""
    if len(text) > LONGEST:
        raise ValueError(f"is {len(text)} characters long; at most {LONGEST} are allowed")
    try:
        _walk(ast.parse(text.strip(), mode="eval").body, np.zeros(1))
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"is not an expression; {ALLOWED}") from None


def evaluate(text: str, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of the expression at each time of `t`; ValueError where it is not a finite number."""
    value = np.broadcast_to(np.asarray(_walk(ast.parse(text.strip(), mode="eval").body, t), np.float64), t.shape)
    if not np.isfinite(value).all():
        raise ValueError(f"is not a finite number at t = {t[~np.isfinite(value)].flat[0]:g}")
    return value


def _walk(node: ast.AST, t: NDArray[np.float64]) -> Any:
    with np.errstate(all="ignore"):
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as number):
                if abs(number) < 1e300:
                    return np.float64(number)
            case ast.Name(id="t"):
                return t
            case ast.Name(id=name) if name in NAMES:
                return np.float64(NAMES[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_walk(operand, t)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return _walk(operand, t)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                if 0 <= power <= HIGHEST_POWER:
                    base, result = _walk(left, t), np.ones_like(t)
                    for _ in range(power):
                        result = result * base
                    return result
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](_walk(left, t), _walk(right, t))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                count, function = FUNCTIONS[name]
                if len(args) == count:
                    return function(*(_walk(argument, t) for argument in args))
                raise ValueError(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(args)}")
    raise ValueError(f"contains {ast.unparse(node)[:40]!r}; {ALLOWED}")
