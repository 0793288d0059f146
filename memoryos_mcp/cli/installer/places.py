"""Finds the clients installed on this machine, and their configuration files."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryos_mcp.cli.installer.catalogue import Client, Place, Platform, Scope
from memoryos_mcp.errors import ArgumentError, ClientFileError

_PLATFORMS: Mapping[str, Platform] = {"darwin": "macos", "win32": "windows"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, with the properties that determine where the configuration files of clients are.

    ``project`` is the folder of the current project.
    """

    platform: Platform
    home: Path
    environment: Mapping[str, str]
    project: Path

    @classmethod
    def this(cls) -> "Machine":
        """Return the properties of this machine. The current working folder is used as the project's folder."""
        try:
            return cls(_PLATFORMS.get(sys.platform, "linux"), Path.home(), os.environ, Path.cwd())
        except RuntimeError as error:
            msg = "this account has no home folder, where clients store their files; set HOME to a folder"
            raise ClientFileError(msg) from error
        except OSError as error:
            msg = "the working folder no longer exists; change to another folder"
            raise ClientFileError(msg) from error

    def base(self, name: str) -> Path:
        """Return the path of the base folder with this name. These names are used in `Place.folder`.

        The names are ``home`` (the home folder), ``codex`` and ``claude`` (the settings of Codex and Claude Code),
        ``config`` (settings of desktop programs), ``local`` (local settings on Windows) and ``xdg`` (settings on Unix).
        """
        if name == "home":
            return self.home
        if name == "codex":
            return self._from("CODEX_HOME", self.home / ".codex")
        if name == "claude":
            return self._from("CLAUDE_CONFIG_DIR", self.home)
        if name == "local":
            return self._from("LOCALAPPDATA", self.home / "AppData" / "Local")
        if name == "config" and self.platform == "windows":
            return self._from("APPDATA", self.home / "AppData" / "Roaming")
        if name == "config" and self.platform == "macos":
            return self.home / "Library" / "Application Support"
        if self.platform == "macos":
            return self.home / ".config"
        return self._from("XDG_CONFIG_HOME", self.home / ".config")

    def _from(self, variable: str, otherwise: Path) -> Path:
        """Return the folder whose absolute path is in an environment variable.

        Return ``otherwise`` if the variable is not set or contains a relative path. The XDG specification requires that
        relative paths are ignored.
        """
        named = Path(self.environment.get(variable) or "")
        return named if named.is_absolute() else otherwise


@dataclass(frozen=True, slots=True)
class Location:
    """The path and the scope of a client's configuration file. The file need not exist.

    ``is_client_there`` is True if the client is installed.
    """

    client: Client
    scope: Scope
    file: Path
    is_client_there: bool


def locations_of(client: Client, scope: Scope, machine: Machine) -> list[Location]:
    """Return the locations of a client's configuration files for a scope.

    For the scope ``user``, return a location for each installation of the client. If the client is not installed,
    return only the first possible location. For the scope ``project``, return one location, or raise `ArgumentError`
    if the client has no file for a project.
    """
    if scope == "project":
        if client.project is None:
            problem = f"{client.title} has no configuration file for a single project; omit --scope"
            raise ArgumentError(argument="--scope project", problem=problem)
        return [Location(client, scope, machine.project / client.project, is_client_there=True)]
    found: list[Location] = []
    for place in client.user:
        if machine.platform in place.platforms:
            for folder in _folders(place, machine):
                file = folder / place.file
                # The home folder exists even if the client is not installed.
                is_there = os.path.lexists(file) if folder == machine.home else _is_folder(folder)
                found.append(Location(client, scope, file, is_there))
    return [each for each in found if each.is_client_there] or found[:1]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # the home folder of another account
        return False


def _folders(place: Place, machine: Machine) -> list[Path]:
    base, _, rest = place.folder.partition("/")
    folder = machine.base(base.strip("{}"))
    if "*" in rest:
        return sorted(folder.glob(rest))
    return [folder / rest if rest else folder]
