"""Chooses the importer for a file: by the name of its format, or by its content."""

from pathlib import Path

from memoryos_mcp.config.problems import nearest_name
from memoryos_mcp.errors import ArgumentError, ImportFormatError
from memoryos_mcp.transfer import export_format
from memoryos_mcp.transfer.importers import READERS, recognise
from memoryos_mcp.transfer.interface import Reader

FORMATS = (export_format.NAME, *(reader.NAME for reader in READERS))


def chosen(path: Path, name: str | None, *, argument: str, if_unknown: str) -> Reader | None:
    """Return the importer for a file; None if the file has this program's own export format.

    Args:
        path: A file or folder that exists.
        name: The format that the user chose. If it is None, the format is recognised from the file.
        argument: The name of the argument with which the user chooses a format, for error messages.
        if_unknown: Advice that ends the error message if the format is not recognised.

    Raises:
        ArgumentError: ``name`` is not a format.
        ImportFormatError: The file is empty or has no known format.
    """
    check_format(name, argument=argument)
    if path.is_file() and path.stat().st_size == 0:
        msg = f"{path} is empty; choose another file"
        raise ImportFormatError(msg)
    if name is not None:
        return next((reader for reader in READERS if name == reader.NAME), None)
    if export_format.recognises(path):
        return None
    reader = recognise(path)
    if reader is None:
        msg = f"{path} is not in a known format ({', '.join(FORMATS)}); {if_unknown}"
        raise ImportFormatError(msg)
    return reader


def check_format(name: str | None, *, argument: str) -> None:
    """Raise `ArgumentError` if ``name`` is neither None nor the name of a format."""
    if name is not None and name not in FORMATS:
        close = nearest_name(name, FORMATS)
        hint = f"; did you mean {close}?" if close else ""
        raise ArgumentError(argument=argument, problem=f"is not one of {', '.join(FORMATS)}{hint}")
