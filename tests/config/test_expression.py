"""Arithmetic in t: what Python gives is what a config gives, and nothing else in Python can be reached."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gerd.config.expression import check, evaluate

TIMES = np.array([-7.25, -1.0, 0.0, 0.5, 3.0, 41.0])


def sign(x: float) -> float:
    return float((x > 0) - (x < 0))


EXACT: dict[str, Callable[..., float]] = {
    "abs": abs,
    "floor": lambda x: float(math.floor(x)),
    "sqrt": math.sqrt,
    "sign": sign,
    "min": min,
    "max": max,
}
ROUNDED: dict[str, Callable[..., float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "exp": math.exp,
    "log": math.log,
    "power": lambda x, n: x**n,
}


def python(text: str, t: float, blur: float = 0.0) -> float | None:
    """The value by Python's own evaluation, None where it has none; `blur` shakes what is only nearly exact."""

    def shaken(function: Callable[..., float]) -> Callable[..., float]:
        return lambda x, *rest: function(x * (1 + blur), *rest) * (1 + blur)

    names = {**EXACT, **{name: shaken(function) for name, function in ROUNDED.items()}, "t": t}
    try:
        value = eval(text, {"__builtins__": {}}, names)
    except (ArithmeticError, ValueError):
        return None
    return float(value) if math.isfinite(value) else None


@st.composite
def expressions(draw: st.DrawFn, functions: list[str]) -> tuple[str, str]:
    """An expression of the grammar, and the same for Python, in which x ** n is power(x, n)."""
    leaves = ["t", "0.1", "3.", ".5", "2", "1e-3", "1E2", "7_0"]
    kinds = ["leaf", "signed", "bare", "bracketed", "call", "min", "max", *(["power"] if "sin" in functions else [])]

    def grown(depth: int) -> tuple[str, str]:
        kind = draw(st.sampled_from(kinds if depth else ["leaf"]))
        if kind == "leaf":
            leaf = draw(st.sampled_from(leaves))
            return leaf, leaf
        if kind == "power":
            (ours, theirs), n = grown(depth - 1), draw(st.integers(0, 16))
            return f"({ours}) ** {n}", f"power({theirs}, {n})"
        form = {
            "signed": "-{0}",
            "bare": f"{{0}}{draw(st.sampled_from('+-*/%'))}{{1}}",
            "bracketed": f"({{0}} {draw(st.sampled_from('+-*/%'))} {{1}})",
            "call": f"{draw(st.sampled_from(functions))}({{0}})",
        }.get(kind, f"{kind}({{0}}, {{1}})")
        first, second = grown(depth - 1), grown(depth - 1) if "{1}" in form else ("", "")
        return form.format(first[0], second[0]), form.format(first[1], second[1])

    return grown(3)


@given(expressions(["abs", "floor", "sqrt", "sign"]))
@settings(max_examples=300)
def test_exact_arithmetic_has_the_bits_of_python(expression: tuple[str, str]) -> None:
    text, called = expression
    check(text)
    expected = [python(called, t) for t in TIMES.tolist()]
    assume(None not in expected)
    assert evaluate(text, TIMES).tolist() == expected


@given(expressions(["sin", "cos", "exp", "log", "sqrt", "floor"]))
@settings(max_examples=300)
def test_functions_and_powers_agree_with_python(expression: tuple[str, str]) -> None:
    text, called = expression
    check(text)
    for t in TIMES.tolist():
        expected, *shaken = (python(called, t, blur) for blur in (0.0, 1e-15, -1e-15))
        if expected is None or None in shaken:
            continue
        if all(math.isclose(expected, other, rel_tol=3e-13) for other in shaken):  # well-conditioned
            assert evaluate(text, np.array([t]))[0] == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("2 - 3 - 4", -5),
        ("-2 ** 2", -4),
        ("(-2) ** 2", 4),
        ("t ** 0", 1),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("1 / 4", 0.25),
        ("sin(pi / 2)", 1),
        ("cos(pi)", -1),
        ("exp(0)", 1),
        ("log(1)", 0),
        ("sign(-3) + sign(0)", -1),
        ("floor(-0.5)", -1),
        ("min(t, 1) + max(t, 5)", 6),
        ("  t  ", 3),
        ("+".join(["1"] * 250), 250),
    ],
)
def test_precedence_and_functions(text: str, value: float) -> None:
    assert evaluate(text, np.array([3.0])).tolist() == [value]


def test_a_number_holds_at_every_time() -> None:
    assert evaluate("2", TIMES).tolist() == [2.0] * len(TIMES)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1 / t", 0),
        ("log(t)", -7.25),
        ("sqrt(t)", -7.25),
        ("t % 0", -7.25),
        ("exp(t * 20)", 41),
        ("exp(t * 17.32)", 41),
    ],
)
def test_what_is_not_a_finite_number_is_refused_with_its_time(text: str, time: float) -> None:
    check(text)  # it is an expression, and may be finite at other times
    with pytest.raises(ValueError, match=f"is not a finite number at t = {time:g}$"):
        evaluate(text, TIMES)


REFUSED = [
    "__import__('os').system('touch marker')",
    "open('marker', 'w')",
    "exec('1')",
    "().__class__.__base__.__subclasses__()",
    "t.real",
    "t[0]",
    "[t]",
    "{t: t}",
    "(t, t)",
    "lambda: t",
    "(x := t)",
    "x",
    "T",
    "e",
    "sin",
    "sin.__call__(t)",
    "'a' * 3",
    "b'a'",
    "f'{t}'",
    "None",
    "True",
    "t ** True",
    "...",
    "1j",
    "1e400",
    "1" * 310,
    "t if t else 1",
    "t < 1",
    "t and t",
    "not t",
    "~t",
    "t // 2",
    "t @ t",
    "t << 1",
    "t | 1",
    "t ** t",
    "t ** -1",
    "t ** 0.5",
    "t ** 17",
    "9 ** 9 ** 9",
    "[x for x in t]",
    "await t",
    "yield t",
    "sin()",
    "sin(t, t)",
    "min(t)",
    "max(*t)",
    "sin(x=t)",
    "sin(t, x=t)",
    "sin(t, **t)",
    "min(t, **t)",
    "t; t",
    "t\nt",
    "t = 1",
    "import os",
    "",
    "   ",
    "# t",
    "(",
    "1 2",
    "t +",
    "1if t else 2",
    "\0",
    "t\0",
    "\ud800",
    "-" * 400 + "t",
    "sin(" * 99 + "t" + ")" * 99 + "+" * 4,
    "t" * 501,
    "t" + " " * 500,
]


@pytest.fixture
def deeds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with whatever this process runs, imports or opens while a test runs."""
    check("t")
    seen: list[str] = []
    monkeypatch.setitem(_WATCH, "list", seen)
    return seen


_WATCH: dict[str, list[str] | None] = {"list": None}


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCH["list"] is not None and event in ("exec", "import", "open", "os.system", "subprocess.Popen"):
        _WATCH["list"].append(f"{event} {arguments}")


sys.addaudithook(_watch)


def complaint(function: Callable[..., Any], *arguments: Any) -> str:
    """What is said against an expression; nothing if it is accepted."""
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("text", REFUSED)
def test_anything_but_arithmetic_is_refused_and_not_run(text: str, deeds: list[str]) -> None:
    message = complaint(check, text)
    assert deeds == []
    assert "allowed" in message
    assert len(message) < 400


def test_the_watch_sees_what_is_run(deeds: list[str]) -> None:
    exec("1")
    assert [deed.split()[0] for deed in deeds] == ["exec"]


pieces = st.sampled_from(
    [*"t()+-*/%.,:[]{}'\"\\ \n_=<>@~", "**", "sin", "min", "pi", "1", "1e9", "lambda ", "__import__"]
)


@given(st.one_of(st.text(), st.lists(pieces, max_size=25).map("".join)))
@settings(max_examples=1000)
def test_any_text_is_accepted_or_refused_with_a_reason(text: str) -> None:
    refused = complaint(check, text)
    if refused:
        assert "allowed" in refused
    else:
        assert (
            complaint(evaluate, text, TIMES).startswith("is not a finite number at t = ")
            or np.isfinite(evaluate(text, TIMES)).all()
        )
