"""Loads the objects that other packages provide by entry points."""

from collections.abc import Collection
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from memoryos_mcp.errors import ConfigError


def load_entry_point(group: str, name: str, setting: str, built_in: Collection[str]) -> Any:
    """Return the object of the entry point ``name`` in a group.

    Args:
        group: Name of the group of entry points.
        name: Name of the entry point.
        setting: The setting whose value is ``name``, for error messages.
        built_in: The other values that the setting can have, for error messages.

    Raises:
        ConfigError: No installed package has this entry point, or it cannot be loaded.
    """
    installed = {point.name: point for point in entry_points(group=group)}
    if name not in installed:
        known = sorted({*built_in, *installed})
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}, or install the package that adds it"
        msg = f"{setting} {name!r} is unknown; {hint}"
        raise ConfigError(msg)
    try:
        return installed[name].load()
    except (ImportError, AttributeError) as error:
        msg = f"{setting}: {name!r} cannot be loaded ({error}); install its package again"
        raise ConfigError(msg) from error
