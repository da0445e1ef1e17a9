"""Calls of public functions: arguments that one does not take, or that are missing, become a `GerdError`.

The error names the function that the user has called, whichever function behind it would stumble over the argument, and
says which arguments there are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar, get_args, get_type_hints, is_typeddict

from gerd.errors import GerdError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, of which a wrong call says what is wrong with it."""

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except TypeError:
            misfit = _misfit(function, args, named)
            if misfit:
                raise GerdError(misfit) from None
            raise

    return called


def names_of(function: Callable[..., object]) -> list[str]:
    """The arguments that a function takes by name, those in the mapping behind its ** among them."""
    result = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            result += [key for part in get_args(get_type_hints(function)[name]) for key in _keys(part)]
        elif name != "self" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            result.append(name)
    return result


def _keys(options: object) -> list[str]:
    return list(get_type_hints(options)) if is_typeddict(options) else []


def _misfit(function: Callable[..., object], args: tuple[object, ...], named: Mapping[str, object]) -> str:
    """What is wrong with a call, or nothing if the arguments fit."""
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    known = names_of(function)
    signature = inspect.signature(function)
    takes = ", ".join(known) or "none"
    more = [parameter for parameter in signature.parameters.values() if parameter.kind is parameter.VAR_KEYWORD]
    if not more or set(known) - set(signature.parameters):  # ** stands for certain names, or there is none
        for word in named:
            if word not in known:
                return f"{name}: there is no argument {word}; {did_you_mean([word], known)}its arguments are {takes}"
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        return f"{name}: {error}; its arguments are {takes}"
    return ""
