"""The commands ``memoryos-mcp backup`` and ``memoryos-mcp restore``."""

from contextlib import closing
from pathlib import Path

from memoryos_mcp.cli.commands.common import progress_on_stderr
from memoryos_mcp.cli.terminal import one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.capabilities import Backups, MemorySummary
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.interface import Stores
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.user_ids import user_folder_name


def back_up(settings: Settings, target: Path, *, is_of_all: bool, as_json: bool) -> None:
    """Back up the memory of the configured user, or of all users, and print a summary of each backup.

    ``target`` is a new file or a folder. In a folder, each backup is named after the user and the time. With
    ``is_of_all``, the memories of all users are backed up, and ``target`` is a folder, which is created if necessary.

    A damaged memory is backed up too. After an error in one memory, the other memories are still backed up.

    Raises:
        ArgumentError: ``target`` is an existing file, or a new file in a folder that does not exist.
        StorageError: A memory is missing, is damaged or cannot be copied, or the storage engine does not support
            backups.
    """
    copies, problems = list[MemorySummary](), list[str]()
    with closing(make_stores(settings, utc_now)) as stores:
        backups = _backups(stores)
        names = backups.names() if is_of_all else [user_folder_name(settings.user_id)]
        is_folder = _makes_folder(target, is_of_all=is_of_all)
        with progress_on_stderr("parts") as show:
            for name in names:
                file = target / f"{name}-{utc_now():%Y%m%dT%H%M%S%f}Z.db" if is_folder else target
                try:
                    copy = backups.make(name, file, lambda done, total: show("copying", done, total))
                except StorageError as error:
                    problems.append(str(error))
                    continue
                if copy is None:
                    whose = name if is_of_all else settings.user_id
                    problems.append(f"user {whose} has no memory in {settings.memories_place}; check the user id")
                    continue
                copies.append(copy)
                if copy.damaged:
                    problems.append(
                        f"memory of {copy.user_id}: {damage_message(copy.damaged)}, and so is the backup; {DAMAGE_FIX}"
                    )
    copied = [{"file": copy.place, **_described(copy)} for copy in copies]
    lines = [f"{copy.place}: {amount(copy.pages, 'page')} of {one_line(copy.user_id)}, verified" for copy in copies]
    print_report({"copies": copied, "problems": problems}, lines, as_json=as_json)
    if problems:
        raise StorageError("; ".join(problems))


def _makes_folder(target: Path, *, is_of_all: bool) -> bool:
    """Return True if ``target`` is a folder for backups, and False if ``target`` is the file of a single backup.

    With ``is_of_all``, ``target`` is always a folder, and a missing folder is created.

    Raises:
        ArgumentError: ``target`` is an existing file, or a new file in a folder that does not exist.
    """
    is_folder = is_of_all or target.is_dir()
    if target.exists() and not target.is_dir():
        problem = "this file already exists, and a backup does not replace a file; choose a new file name, or a folder"
        raise ArgumentError(argument=str(target), problem=problem)
    if is_folder:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not target.parent.is_dir():
        raise ArgumentError(argument=str(target), problem="the folder does not exist; create it or choose another path")
    return is_folder


def restore(settings: Settings, copy: Path, *, is_confirmed: bool, as_json: bool) -> None:
    """Replace the configured user's memory with the backup in the file ``copy``, and print a summary.

    Without ``is_confirmed``, nothing is changed, and the summary says what would change.
    """
    with closing(make_stores(settings, utc_now)) as stores:
        backups = _backups(stores)
        plan = backups.plan_restore(settings.user_id, copy)
        if is_confirmed:
            with progress_on_stderr("parts") as show:
                backups.restore(plan, lambda done, total: show("copying", done, total))
    result = {
        "is_done": is_confirmed,
        "backup": _described(plan.backup),
        "replaced": None if plan.replaced is None else _described(plan.replaced),
        "kept_as": str(plan.kept) if is_confirmed and plan.kept else None,
    }
    verb = "Replaced" if is_confirmed else "Would replace"
    lines = [
        f"Backup: {_in_words(plan.backup)}",
        f"{verb}: {_in_words(plan.replaced) if plan.kept else 'nothing'}",
    ]
    if not is_confirmed:
        lines.append(
            "Nothing was changed. Stop the servers that use this memory, and run the command again with --yes."
        )
    elif plan.kept:
        lines.append(
            f"A backup copy of the previous memory is in {plan.kept}. Delete the copy when you no longer need it. "
            "It is deleted automatically only when the whole memory is forgotten."
        )
    print_report(result, lines, as_json=as_json)


def _backups(stores: Stores) -> Backups:
    """Return the object that makes backups. Raise `StorageError` if the storage engine does not support backups."""
    if stores.backups is None:
        msg = (
            f"this command does not support memories in {stores.engine}; use the backup tools of {stores.engine}. "
            "For one user, memoryos-mcp export FILE and memoryos-mcp import FILE also work"
        )
        raise StorageError(msg)
    return stores.backups


def _described(summary: MemorySummary) -> dict[str, object]:
    last = summary.last_added_at
    return {
        "user_id": summary.user_id,
        "pages": summary.pages,
        "last_added_at": last.isoformat() if last else None,
        "damaged_pages": list(summary.damaged),
    }


def _in_words(summary: MemorySummary | None) -> str:
    if summary is None:
        return "a file that cannot be read"
    last = summary.last_added_at
    damaged = f"; {damage_message(summary.damaged)}" if summary.damaged else ""
    return (
        amount(summary.pages, "page")
        + (f", the newest from {last.astimezone():%Y-%m-%d %H:%M}" if last else "")
        + damaged
    )
