"""Imports of uploaded files, which run in the background of one process.

An import begins with a dry run, which counts the items in the file. Nothing is stored until the user confirms the
import. Imports of the same user run one after another.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from memoryos_mcp.consolidation.loops import BackgroundTasks
from memoryos_mcp.errors import ArgumentError, MemoryOSError

if TYPE_CHECKING:  # a server imports the engine only after its first reply
    from memoryos_mcp.engine.engine import MemoryEngine
    from memoryos_mcp.transfer.reports import ImportReport

logger = logging.getLogger(__name__)

# An import that is not confirmed within this time is discarded.
CONFIRM_S = 3600.0
# Maximum number of one user's imports that have not ended. Each has a file on disk.
OPEN_PER_USER = 3
# Imports that have ended stay listed until the user has this many newer ones.
ENDED_PER_USER = 5

Opening = Callable[[str], "AbstractAsyncContextManager[MemoryEngine]"]


class Stage(StrEnum):
    """The stage of an import."""

    WAITING = "waiting"
    COUNTING = "counting"
    COUNTED = "counted"
    STORING = "storing"
    DONE = "done"
    FAILED = "failed"
    DISCARDED = "discarded"


@dataclass(slots=True, eq=False)
class FileImport:
    """The import of one file.

    Attributes:
        name: The name of the file on the computer from which it was uploaded.
        size_bytes: The size of the file.
        stage: The current stage.
        done_bytes: Number of bytes processed in the current step.
        dry_run: The report of the dry run: what the import would store; None until the dry run has ended.
        report: The report of the import: what was stored; None until the import is done.
        problem: Why the import failed; empty if it did not.
        import_id: Random id of the import.
    """

    name: str
    size_bytes: int
    path: Path = field(repr=False)
    format_name: str | None = None
    stage: Stage = Stage.WAITING
    step: str = ""
    done_bytes: int = 0
    dry_run: "ImportReport | None" = None
    report: "ImportReport | None" = None
    problem: str = ""
    import_id: str = field(default_factory=lambda: secrets.token_hex(8))
    _confirmed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def is_running(self) -> bool:
        """Whether the import is counting or storing items, or is waiting for its turn."""
        return self.stage in {Stage.WAITING, Stage.COUNTING, Stage.STORING}

    @property
    def has_ended(self) -> bool:
        """Whether the import has ended: it is done, has failed or was discarded."""
        return self.stage in {Stage.DONE, Stage.FAILED, Stage.DISCARDED}

    def show(self, step: str, done_bytes: int) -> None:
        """Record the name of the current step, and the number of bytes processed in it."""
        self.step, self.done_bytes = step, done_bytes


class Imports:
    """The imports that this process runs, for all users.

    Args:
        opening: Opens a user's memory.
        confirm_s: Time in seconds within which an import must be confirmed. Otherwise, it is discarded.
    """

    def __init__(self, opening: Opening, confirm_s: float = CONFIRM_S) -> None:
        self._opening = opening
        self._confirm_s = confirm_s
        self._of_user: dict[str, list[FileImport]] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._tasks = BackgroundTasks()

    def of_user(self, user_id: str) -> list[FileImport]:
        """Return a user's imports, the newest first."""
        return self._of_user.get(user_id, [])[::-1]

    def check_room(self, user_id: str) -> None:
        """Raise `ArgumentError` if the user has too many imports that have not ended."""
        if sum(not each.has_ended for each in self.of_user(user_id)) >= OPEN_PER_USER:
            problem = "cannot be imported now, because too many imports have not ended; confirm or discard one of them"
            raise ArgumentError(argument="file", problem=problem)

    def begin(self, user_id: str, path: Path, name: str, format_name: str | None) -> FileImport:
        """Begin to import a file: count its items, then wait for `confirm`.

        Args:
            user_id: The user into whose memory the file is imported.
            path: The file. The import removes it at the end.
            name: The name of the file for messages.
            format_name: The name of the format; None means that the format is recognised from the file.
        """
        begun = FileImport(name, path.stat().st_size, path, format_name)
        known = self._of_user.setdefault(user_id, [])
        known.append(begun)
        for old in [each for each in known if each.has_ended][:-ENDED_PER_USER]:
            known.remove(old)
        begun._task = self._tasks.start(self._run(user_id, begun))
        return begun

    def confirm(self, user_id: str, import_id: str) -> FileImport:
        """Let an import store the items that its dry run counted, after the user has confirmed this. Return the import.

        Raises:
            ArgumentError: The import does not exist, or does not wait for confirmation.
        """
        found = self._found(user_id, import_id)
        if found.stage is not Stage.COUNTED:
            problem = "cannot be confirmed now, because it is not waiting for confirmation; reload the list"
            raise ArgumentError(argument="import", problem=problem)
        found.stage = Stage.WAITING
        found._confirmed.set()
        return found

    def discard(self, user_id: str, import_id: str) -> FileImport:
        """Stop an import, or remove it from the list if it has ended. Return the import.

        Pages that are already stored stay stored.

        Raises:
            ArgumentError: The import does not exist.
        """
        found = self._found(user_id, import_id)
        if found.has_ended:
            self._of_user[user_id].remove(found)
        elif found._task is not None:
            found._task.cancel()
        return found

    async def close(self) -> None:
        """Stop all imports, and remove their files."""
        await self._tasks.cancel()

    def _found(self, user_id: str, import_id: str) -> FileImport:
        for each in self.of_user(user_id):
            if each.import_id == import_id:
                return each
        problem = "does not exist or was removed from the list; reload the list, or import the file again"
        raise ArgumentError(argument="import", problem=problem)

    async def _run(self, user_id: str, each: FileImport) -> None:
        try:
            each.dry_run = await self._import(user_id, each, Stage.COUNTING)
            each.stage = Stage.COUNTED
            async with asyncio.timeout(self._confirm_s):
                await each._confirmed.wait()
            each.report = await self._import(user_id, each, Stage.STORING)
            each.stage = Stage.DONE
        except (TimeoutError, asyncio.CancelledError):
            each.stage = Stage.DISCARDED
        except MemoryOSError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                each.stage = Stage.DISCARDED
            else:
                each.stage, each.problem = Stage.FAILED, str(error).replace(str(each.path), each.name)
        except Exception as error:  # noqa: BLE001 - nobody awaits this task, so the page must say that it ended
            logger.error(  # noqa: TRY400 - a traceback may quote the file
                "an import failed because of an unexpected %s; import the file again. Report the error if it recurs",
                type(error).__name__,
            )
            each.stage, each.problem = Stage.FAILED, f"unexpected {type(error).__name__}; import the file again"
        finally:
            each.path.unlink(missing_ok=True)

    async def _import(self, user_id: str, each: FileImport, stage: Stage) -> "ImportReport":
        """Wait until no other import of the user is running, then count or store the items, and return the report.

        In the stage ``COUNTING``, the items are only counted. In the stage ``STORING``, they are stored.
        """
        async with self._turns.setdefault(user_id, asyncio.Lock()), self._opening(user_id) as engine:
            each.stage = stage
            each.done_bytes = 0
            return await engine.import_file(
                each.path, each.format_name, is_dry_run=stage is Stage.COUNTING, show=each.show
            )
