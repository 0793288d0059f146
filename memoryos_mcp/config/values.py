"""Descriptions of the values that settings can have, for error messages and the documentation."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr

from memoryos_mcp.config import Settings


def value_type(name: str) -> object:
    """Return the type of a setting's values, apart from null.

    The result is a plain class, or `Literal` if only certain strings are allowed.
    """
    annotation = _annotation(name)
    return get_origin(annotation) or annotation


def takes_null(name: str) -> bool:
    """Return whether the documentation lists null as an allowed value of a setting.

    The result is False for a setting with string values, because "" is documented instead of null.
    """
    is_optional = NoneType in get_args(Settings.model_fields[name].annotation)
    return is_optional and value_type(name) not in (str, SecretStr)


def describe_values(name: str) -> str:
    """Return a description of a setting's allowed values, such as "a whole number from 1 to 100"."""
    return _described(name) + (" or null" if takes_null(name) else "")


def allowed_texts(name: str) -> tuple[str, ...]:
    """Return the allowed strings of a setting. Its type must be `Literal`."""
    return get_args(_annotation(name))


def _described(name: str) -> str:
    kind, limits = value_type(name), Settings.model_fields[name].metadata
    if kind in (int, float):
        return f"{'a whole number' if kind is int else 'a number'} {_range(limits)}"
    if kind is list:
        (item,) = get_args(_annotation(name))
        if item is str:
            return "a JSON list of texts"
        return (
            f"a JSON list of up to {_limit(limits, 'max_length')} texts{_length(get_args(item)[1].metadata)} "
            "without control characters, all different even if case is ignored"
        )
    if kind is Literal:
        return f"one of {', '.join(allowed_texts(name))}"
    if kind is Path:
        return "a file's path" if name.endswith("_file") else "a folder's path"
    if kind is bool:
        return "true or false"
    if kind is dict:
        return "a JSON object"
    return f"a text{_length(limits)}"


def _annotation(name: str) -> Any:
    """Return the type annotation of a setting, with ``| None`` removed."""
    annotation = Settings.model_fields[name].annotation
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    return next(part for part in get_args(annotation) if part is not NoneType)


def _length(metadata: Iterable[object]) -> str:
    longest = _limit(metadata, "max_length")
    return f" of 1 to {longest:,} characters" if longest else ""


def _limit(metadata: Iterable[object], bound: str) -> Any:
    return next((getattr(part, bound) for part in metadata if getattr(part, bound, None) is not None), None)


def _range(metadata: Sequence[object]) -> str:
    at_least, above, at_most = (_limit(metadata, bound) for bound in ("ge", "gt", "le"))
    if above is not None:
        return f"above {above:,}" if at_most is None else f"above {above:,} and up to {at_most:,}"
    if at_most is None:
        return f"of {at_least:,} or more"
    return f"from {at_least:,} to {at_most:,}"
