"""The factors: what a test changes, one at a time, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gerd.bench.frozen import read_frozen
from gerd.calls import explained
from gerd.config.config import Config
from gerd.errors import GerdError, did_you_mean, shorten


@dataclass(frozen=True)
class Factor:
    """One property of a scene or of the camera."""

    name: str
    unit: str  # empty for a number without one
    path: str  # of the field of a config that is set; * stands for every actor
    complement: bool  # whether the field is 1 minus the amount
    neutral: float
    amounts: tuple[float, ...]  # ascending, the neutral one among them
    inner: tuple[float, ...]  # those that training may see, without the neutral one

    @property
    def outer(self) -> tuple[float, ...]:
        """The amounts that training never sees."""
        return tuple(amount for amount in self.amounts if amount != self.neutral and amount not in self.inner)

    @property
    def outermost(self) -> tuple[float, ...]:
        """The largest amount and the smallest, as far as they are not the neutral one."""
        return tuple(amount for amount in (self.amounts[0], self.amounts[-1]) if amount != self.neutral)

    def fields(self, amount: float, actors: int) -> dict[str, float | int]:
        """The fields of a config with so many actors that set an amount, and their values."""
        value: float | int = round(1 - amount, 9) if self.complement else amount
        value = int(value) if float(value).is_integer() else value  # some fields take whole numbers only
        if "*" not in self.path:
            return {self.path: value}
        return {self.path.replace("*", str(actor)): value for actor in range(actors)}

    def set(self, config: Config, amount: float) -> Config:
        """A task's config with this amount of the factor."""
        return config.replace(**self.fields(amount, len(config.actors)))


@lru_cache
def factors() -> tuple[Factor, ...]:
    """All factors."""
    return tuple(_factor(name, **row) for name, row in read_frozen("factors.yaml").items())


def _factor(
    name: str,
    *,
    unit: str,
    path: str,
    neutral: float,
    inner: list[float],
    outer: list[float],
    complement: bool = False,
) -> Factor:
    amounts = tuple(sorted(map(float, [neutral, *inner, *outer])))
    return Factor(name, unit, path, complement, float(neutral), amounts, tuple(sorted(map(float, inner))))


@explained
def factor(name: str) -> Factor:
    """The factor of this name."""
    names = [each.name for each in factors()]
    if name not in names:
        raise GerdError(f"factor {shorten(name)}: {did_you_mean([name], names)}allowed: {', '.join(names)}")
    return factors()[names.index(name)]
