"""What states of streams and samplers share: a state of something else is refused, and numbers count all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gerd.errors import GerdError, check_whole, shorten

State = dict[str, Any]  # where a stream or a sampler stands, as plain data


def check_nature(state: State, nature: Mapping[str, object], owner: str) -> None:
    """Refuse a state of another stream or sampler; `nature` is what the batches of the owner are a function of."""
    for name, own in nature.items():
        if state.get(name, own) != own:
            other = shorten(state[name])
            raise GerdError(f"the state is of a {owner} with {name} {other}; this one has {shorten(own)}")


def of_one_rank(state: State, name: str, ranks: int) -> int:
    """The share of one rank in a number of the state."""
    total: Any = state.get(name)
    check_whole(name, total, 0)
    if total % ranks:
        raise GerdError(f"{name} {total}: allowed with {ranks} ranks: a multiple of {ranks}")
    return int(total) // ranks
