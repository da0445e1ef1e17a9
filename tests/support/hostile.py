"""Configs that a stranger could write: every field at the ends of its range and beyond, drawn from a `random.Random`.

Small enough in frame and steps that a sound program answers at once. What comes out is text: JSON, which is YAML.
"""

from __future__ import annotations

import json
import random
from typing import Any

SMALLEST = [5e-324, 1e-320, 2.2250738585072014e-308, 1e-300, 1e-160, 1e-100, 1e-17, 1e-9, 1e-6]
ORDINARY = [0, 1, -1, 0.5, 2, 3.7, 8, 90]
LARGEST = [1000, 1e5, 999999999, 1e9, 1e10, 1e15, 1e100, 1e300, 1.7976931348623157e308]
EXPRESSIONS = [
    "1/t", "exp(t * 700)", "exp(-t * 800)", "sin(1e300 * t)", "t ** 16", "1e299 * t", "log(t)", "sqrt(-t)", "t % 0",
    "sin(t / 3)", "1e9 * sign(t)", "floor(t / 1e-300)", "1e9 * cos(1e14 * t)", "max(t, 1e9)", "1e-320 * t",
]  # fmt: skip
FUNCTIONS = ["os:system", "a:b"]
RINGS = [
    [[0, 0], [1, 1e-310], [1, 1]],
    [[0, 0], [1000, 0], [-1000, 1e-9]],
    [[-1000, -1000], [1000, -1000], [1000, 1000], [-1000, 1000]],
    [[0, 0], [0.5, 0], [0.5, 0], [0, 0.5]],
    [[0, -0.5], [0.29, 0.4], [-0.48, -0.15], [0.48, -0.15], [-0.29, 0.4]],
    [[[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5]], [[-0.1, -0.4], [0.4, -0.4], [0.4, 0.1]]],
]


def number(chance: random.Random) -> float:
    """Any number; most of them are in range, so that a config of many is not always refused for one."""
    value: float = chance.choice(
        chance.choice([ORDINARY] * 8 + [SMALLEST, SMALLEST, LARGEST[:4], LARGEST[:4], LARGEST])
    )
    return value if chance.random() < 0.7 else -value


def size(chance: random.Random) -> float:
    return abs(number(chance)) or 1


def drawn(chance: random.Random) -> Any:
    kind = chance.choice(["number"] * 4 + ["uniform", "normal", "choice"])
    if kind == "number":
        return number(chance)
    if kind == "uniform":
        return {"uniform": sorted([number(chance), number(chance)])}
    return {kind: [number(chance), abs(number(chance))]}


def acceleration(chance: random.Random) -> Any:
    kind = chance.choice(["drawn", "none", "profile", "expression"] * 5 + ["function"])
    if kind == "profile":
        fields = {name: number(chance) for name in ("phase", "at") if chance.random() < 0.5}
        fields["duration"] = size(chance)
        fields["period"] = chance.choice([chance.choice(SMALLEST), 0.001, 20, abs(number(chance))])
        return {"profile": chance.choice(["sine", "square", "pulse"]), "amplitude": number(chance), **fields}
    if kind == "expression":
        return {"expression": chance.choice(EXPRESSIONS)}
    if kind == "function":
        return {"function": chance.choice(FUNCTIONS)}
    return drawn(chance) if kind == "drawn" else 0


def pair(chance: random.Random, one: Any) -> Any:
    return [one(chance), one(chance)] if chance.random() < 0.3 else one(chance)


def some(chance: random.Random, fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if chance.random() < 0.5}


def actor(chance: random.Random) -> dict[str, Any]:
    shapes = ["square", "circle", "triangle", {"text": "g"}, *({"polygon": ring} for ring in RINGS)]
    places = [drawn(chance), "centre", "uniform", [number(chance), number(chance)]]
    speeds = [drawn(chance), drawn(chance), {"boundary": drawn(chance)}, {"factor": drawn(chance)}]
    result = {
        "translation": some(chance, {
            "start": chance.choice(places), "velocity": pair(chance, drawn), "acceleration": pair(chance, acceleration),
            "border": chance.choice(["free", "bounce", "wrap"]), "margin": number(chance),
            "speed_limit": size(chance),
        }),
        "scale": some(chance, {
            "start": pair(chance, drawn), "velocity": chance.choice(speeds), "acceleration": pair(chance, acceleration),
            "limits": chance.choice([[1e-9, None], [size(chance), None]]), "speed_limit": size(chance),
        }),
        "rotation": some(chance, {
            "start": drawn(chance), "velocity": chance.choice(speeds[:3]), "acceleration": acceleration(chance),
            "speed_limit": size(chance),
        }),
        "shear": some(chance, {
            "start": drawn(chance), "velocity": chance.choice(speeds[:3]), "acceleration": acceleration(chance),
            "limits": chance.choice([[None, None], [number(chance), None]]),
        }),
        "intensity": chance.choice([1, 1, drawn(chance)]),
        "repeat": chance.choice([0, 1, 3, 60, {"uniform": [0, 2]}, {"choice": [1, 2]}]),
    }  # fmt: skip
    return {"shape": chance.choice(shapes), **some(chance, result)}


def transformation(chance: random.Random) -> dict[str, Any]:
    """One entry of `transform`."""
    amount, other = number(chance), number(chance)
    return chance.choice([
        {"translate": [amount, other]}, {"rotate": amount}, {"scale": amount}, {"scale": [amount, other]},
        {"shear": amount, "about": [other, 0]}, {"mirror": chance.choice(["x", "y", "none"])},
        {"affine": [[amount, other, 0], [0, 1, number(chance)]]}, {"boost": [amount, other], "epoch": number(chance)},
        {"accelerate": [amount, other], "epoch": number(chance)}, {"time_scale": size(chance)},
        {"time_scale": chance.choice([0.5, 3, 1000, 1e-9])},
    ])  # fmt: skip


def probability(chance: random.Random) -> float:
    return chance.choice([0, 1, 1e-320, 2**-33, 0.3, -0.0])


def threshold(chance: random.Random) -> Any:
    one, other = chance.choice([0.001, 0.5, 16]), chance.choice([0.001, 0.7, 16, 16])
    return chance.choice([one, one, {"on": one, "off": other, "spread": chance.choice([0, -0.0, 5e-324, 0.01, 1, 16])}])


def noise(chance: random.Random) -> dict[str, Any]:
    each = {"on": probability(chance), "off": probability(chance)}
    return some(chance, {
        "background": chance.choice([probability(chance), each]), "shape": probability(chance),
        "event": probability(chance), "dead": probability(chance),
        "hot": {"share": probability(chance), "rate_hz": chance.choice([0, 5e-324, 0.001, 0.001, 300, 1000, 1e6])},
    })  # fmt: skip


def stored_values(chance: random.Random) -> dict[str, Any]:
    """What a config says that its functions give: often enough to be simulated without them."""
    sound = ["0 0.5 -1e-3 " * 40, "1,0 0,1 " * 60, "1e9 -1e9 " * 60, "-0 0 " * 60]
    spoilt = ["1e999", "1 2,3", "", "9" * 99, "0.1" * 999, "1 1", "nan", "1\x00"]
    first = chance.choice([-60, -60, -60, -9, 0, 10**12, 2**63])
    values = {"first": first, "values": chance.choice(sound * 4 + spoilt).strip()}
    digest = {"first": first, "count": chance.choice([1, 9, 10**7, 2**63]), "sha256": chance.choice("00x") * 64}
    return {chance.choice(FUNCTIONS): chance.choice([values, values, values, digest])}


def config(chance: random.Random) -> dict[str, Any]:
    integrator = {
        "warmup": chance.choice([0, 1, 7]), "threshold": threshold(chance),
        "initial": chance.choice(["usual", "uniform", "stationary", 0, 1, -1]),
        "reset": chance.choice(["subtract", "zero"]),
    }  # fmt: skip
    return {
        "sensor": {"width": chance.choice([1, 2, 9, 33]), "height": chance.choice([1, 3, 8, 17])},
        "steps": chance.choice([1, 2, 5, 40]),
        "actors": [actor(chance) for _ in range(chance.choice([0, 1, 1, 1, 2, 3]))],
        **some(chance, {
            "noise": noise(chance), "integrator": some(chance, integrator),
            "camera": {"number": chance.choice([0, 1, 1, 7, 2**31, 2**32 - 1])},
            **({"functions": stored_values(chance)} if chance.random() < 0.3 else {}),
            "upsampling": chance.choice([1, 3, 8, 32]), "seed": chance.choice([0, 2**64 - 1]),
            "time_scale": chance.choice([1, 1000, 1e-300, 0.37, 1e-6, 5e-324, {
                "factor": chance.choice([3, 1e-9, 0.01, 1000, size(chance)]), "keep": chance.choice(["steps", "path"]),
            }]),
            "step_us": chance.choice([1, 10**9]), "timing": chance.choice(["step", "exact", "exact"]),
            "transform": [transformation(chance) for _ in range(chance.choice([1, 1, 2, 5]))],
        }),
    }  # fmt: skip


def text(chance: random.Random) -> str:
    """A hostile config, a fifth of them with a sweep of one or two of its fields."""
    result = config(chance)
    if chance.random() < 0.2:
        paths = [
            "time_scale",
            "actors.0.scale.start",
            "actors.0.rotation.velocity",
            "sensor.width",
            "transform.0.rotate",
            "integrator.threshold.spread",
            "noise.background.on",
            "noise.hot.rate_hz",
            "camera.number",
        ]
        swept = chance.sample(paths, chance.choice([1, 1, 2]))
        result["sweep"] = {path: [abs(number(chance)) for _ in range(2)] for path in swept}
    return json.dumps(result)
