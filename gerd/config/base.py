"""What the models of a config share: they are frozen, refuse unknown keys, and say where a value is wrong.

A field is named by its path, such as `actors.0.scale.start`: keys and places in lists, with dots between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from gerd.config.document import Location, PlainData
from gerd.errors import MOST_WORDS, GerdError, did_you_mean, shorten

_WORDING = {  # our words for pydantic's kinds of errors
    "float_type": "allowed: a number",
    "int_type": "allowed: a whole number",
    "string_type": "allowed: text in quotes",
    "tuple_type": "allowed: a list",
    "dict_type": "allowed: a mapping",
    "too_short": "allowed: {min_length} or more items, not {actual_length}",
    "too_long": "allowed: at most {max_length} items, not {actual_length}",
    "string_too_short": "allowed: {min_length} or more characters",
    "string_too_long": "allowed: at most {max_length} characters",
}


def invalid(message: str, *path: str | int, value: object = None) -> ValidationError:
    """An error with one problem, at `path` below the model or field that raises it."""
    return all_invalid([problem(message, path, value)])


def all_invalid(problems: Iterable[InitErrorDetails]) -> ValidationError:
    """An error with several problems."""
    return ValidationError.from_exception_data("config", list(problems))


def refuse(problems: list[InitErrorDetails]) -> None:
    """Raise these problems, if there are any."""
    if problems:
        raise all_invalid(problems)


def problem(message: str, path: Location, value: object, kind: str = "problem", **context: object) -> InitErrorDetails:
    """What is wrong at `path`, as pydantic holds it."""
    error = PydanticCustomError(kind, "{message}", {**context, "message": message})
    return InitErrorDetails(type=error, loc=path, input=value)


def problems_of(error: ValidationError) -> list[InitErrorDetails]:
    """The problems that `error` consists of, in our words and with the paths that the user wrote."""
    result = []
    for part in error.errors(include_url=False):
        context = {key: value for key, value in part.get("ctx", {}).items() if key != "message"}
        if part["type"] == "too_short" and len(part["input"]) >= context["min_length"]:
            continue  # pydantic counts good items only, and the bad ones are listed
        message = part["msg"].replace("Input should be", "allowed:")
        if part["type"] in _WORDING:
            message = _WORDING[part["type"]].format_map(context)
        path = tuple(word for word in part["loc"] if word not in TAGS.values())
        result.append(problem(message, path, part["input"], part["type"], **context))
    return result


TAGS: dict[str, str] = {}  # of the forms in which values are written


def tag(form: str) -> str:
    """A name for one of several forms of a value; `problems_of` leaves it out of paths, since nobody wrote it."""
    return TAGS.setdefault(form, f"<{form}>")


class Model(BaseModel):
    """Frozen; an unknown key is refused, with a suggestion."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    part: ClassVar[str] = ""  # of a config: what messages call it; no fields are looked for in one without such a name
    example: ClassVar[str] = ""  # for whoever writes something else than a mapping

    def __setattr__(self, name: str, value: object) -> None:
        if name in type(self).model_fields:
            path = "" if self.part == "the config itself" else "path.to."
            new = f"**{{'{path}{name}': {shorten(value)}}}" if path else f"{name}={shorten(value)}"
            raise GerdError(f"{name}: a config cannot be changed; config.replace({new}) gives a new one")
        super().__setattr__(name, value)

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, cls):
            return handler(data)
        fields = ", ".join(cls.model_fields)
        if not isinstance(data, Mapping):
            such = f", such as {cls.example}" if cls.example else ""
            raise invalid(f"allowed: a mapping with the fields {fields}{such}", value=data)
        known = {key: value for key, value in data.items() if key in cls.model_fields}
        if len(known) == len(data):
            return handler(data)
        problems = []
        for number, key in enumerate(key for key in data if key not in known):
            meant = ""
            where = _parts_with(str(key)) if cls.part and number < MOST_WORDS else ""
            if where:
                meant = f"{key} is a field of {where}: is the line indented as far as the others there? "
            elif number < MOST_WORDS:
                meant = did_you_mean([key], cls.model_fields)
            problems.append(problem(f"unknown key; {meant}allowed: {fields}", (str(key),), data[key]))
        try:
            handler(known)
        except ValidationError as error:
            problems += problems_of(error)
        raise all_invalid(problems)


def _parts_with(field: str) -> str:
    """The parts of a config that have a field of this name, in words: one that is indented wrongly belongs there."""
    return ", ".join(model.part for model in Model.__subclasses__() if model.part and field in model.model_fields)


def at(node: Any, path: str) -> Any:
    """What a model holds at `path`, where there is such a field."""
    for word in path.split("."):
        node = node[int(word)] if isinstance(node, tuple) else getattr(node, word)
    return node


def replaced(
    node: object, path: str, value: object, not_to_be: tuple[str, ...] = (), above: str = ""
) -> dict[str, object] | list[object]:
    """A model as data with `value` at `path`; everything beside the path is kept as it is. It lies at `above`."""
    if isinstance(node, Model):
        node = {name: getattr(node, name) for name in type(node).model_fields}
    children: dict[str, object] = {}
    if isinstance(node, Mapping):
        children = {str(key): child for key, child in node.items() if key not in not_to_be}
    elif isinstance(node, tuple | list):
        children = {str(i): child for i, child in enumerate(node)}
    key, dot, rest = path.partition(".")
    here = f"{above}.{key}" if above else key
    if key not in children:
        allowed = f"allowed in {above or 'the config'}: {', '.join(children) or 'nothing below it'}"
        raise invalid(f"no such field; {did_you_mean([key], children)}{allowed}", f"{here}{dot}{rest}")
    changed = replaced(children[key], rest, value, above=here) if dot else value
    if isinstance(node, Mapping):
        return {**node, key: changed}
    return [changed if name == key else child for name, child in children.items()]


def checked_with(node: object, path: str, not_to_be: tuple[str, ...] = ()) -> int:
    """How many values are checked again when the one at `path` is replaced: those beside it that are no models."""
    total = 0
    for word in path.split("."):
        if isinstance(node, Model):
            node = {name: getattr(node, name) for name in type(node).model_fields}
        children = (
            node if isinstance(node, Mapping) else dict(enumerate(node)) if isinstance(node, tuple | list) else {}
        )
        children = {str(key): child for key, child in children.items()}
        total += sum(size_of(child) for key, child in children.items() if key not in (word, *not_to_be))
        node = children.get(word)
    return total


def size_of(value: object) -> int:
    """How many values plain data has; a model in it counts as one, because it is not checked again."""
    if isinstance(value, Mapping):
        return 1 + sum(map(size_of, value.values()))
    return 1 + sum(map(size_of, value)) if isinstance(value, list | tuple) else 1


def plain(value: object, exclude_defaults: bool = False) -> PlainData:
    """A value in which there may be models as plain data, with or without the fields that are at their defaults."""
    if isinstance(value, tuple | list):
        return [plain(part, exclude_defaults) for part in value]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=exclude_defaults)
    return value
