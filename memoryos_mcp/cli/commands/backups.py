"""The commands ``memoryos-mcp backup``, which works while servers run, and ``memoryos-mcp restore``."""

import json
from contextlib import closing
from pathlib import Path

import click

from memoryos_mcp.cli.commands.common import progress_on_stderr
from memoryos_mcp.cli.terminal import one_line, prepare_stdout
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.capabilities import Backups, MemorySummary
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.interface import Stores
from memoryos_mcp.storage.paths import stamp, user_folder_name
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.text.amounts import amount


def back_up(settings: Settings, target: Path, *, is_of_all: bool, as_json: bool) -> None:
    """Copy the configured user's memory, or every user's, and print what was copied.

    The target is a new file, or a folder in which files are named by user and time. For all users it is a folder.

    Raises:
        ArgumentError: The file exists already, or its folder does not.
        StorageError: A memory is missing or damaged, or cannot be copied; the others are copied anyway.
    """
    prepare_stdout()
    copies, problems = list[MemorySummary](), list[str]()
    with closing(make_stores(settings, utc_now)) as stores:
        backups = _backups(stores)
        names = backups.names() if is_of_all else [user_folder_name(settings.user_id)]
        is_folder = _makes_folder(target, is_of_all=is_of_all)
        with progress_on_stderr("parts") as show:
            for name in names:
                file = target / f"{name}-{stamp(utc_now())}.db" if is_folder else target
                try:
                    copy = backups.make(name, file, lambda done, total: show("copying", done, total))
                except StorageError as error:
                    problems.append(str(error))
                    continue
                if copy is None:
                    whose = name if is_of_all else settings.user_id
                    problems.append(f"there is no memory of {whose} in {settings.data_storage_path}")
                    continue
                copies.append(copy)
                if copy.damaged:
                    problems.append(
                        f"memory of {copy.user_id}: {damage_message(copy.damaged)}, in the copy too; {DAMAGE_FIX}"
                    )
    if as_json:
        told = [{"file": copy.place, **_described(copy)} for copy in copies]
        click.echo(json.dumps({"copies": told, "problems": problems}))
    else:
        for copy in copies:
            click.echo(f"{copy.place}: {amount(copy.pages, 'page')} of {one_line(copy.user_id)}, checked")
    if problems:
        raise StorageError("; ".join(problems))


def _makes_folder(target: Path, *, is_of_all: bool) -> bool:
    """Return whether copies go into a folder, which is created if it is missing.

    Raises:
        ArgumentError: The file exists already, or its folder does not.
    """
    is_folder = is_of_all or target.is_dir()
    if target.exists() and not target.is_dir():
        raise ArgumentError(argument=str(target), problem="is there already; choose a new file, or a folder")
    if is_folder:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not target.parent.is_dir():
        raise ArgumentError(
            argument=str(target), problem="is in a folder that does not exist; create it or choose another path"
        )
    return is_folder


def restore(settings: Settings, copy: Path, *, is_confirmed: bool, as_json: bool) -> None:
    """Replace the configured user's memory with a backup, or without confirmation print what that would do.

    The backup stays. After an error nothing is changed.

    Raises:
        ArgumentError: The backup belongs to another user.
        DamagedStoreError: The backup is damaged, or the file is not a backup.
        NewerStoreError: A newer version wrote it.
        StorageError: The memory is in use, or cannot be written.
    """
    prepare_stdout()
    with closing(make_stores(settings, utc_now)) as stores:
        backups = _backups(stores)
        plan = backups.plan_restore(settings.user_id, copy)
        if is_confirmed:
            with progress_on_stderr("parts") as show:
                backups.restore(plan, lambda done, total: show("copying", done, total))
    if as_json:
        replaced = None if plan.replaced is None else _described(plan.replaced)
        told = {"is_done": is_confirmed, "backup": _described(plan.backup), "replaced": replaced}
        click.echo(json.dumps({**told, "kept_as": str(plan.kept) if is_confirmed and plan.kept else None}))
        return
    click.echo(f"Backup: {_in_words(plan.backup)}")
    verb = "Replaced" if is_confirmed else "Would replace"
    click.echo(f"{verb}: {_in_words(plan.replaced) if plan.kept else 'nothing'}")
    if not is_confirmed:
        click.echo("Nothing was changed. Stop the servers of this memory, and run the command again with --yes.")
    elif plan.kept:
        click.echo(
            f"The previous memory is kept as {plan.kept}. Delete it when you no longer need it; only forgetting "
            "everything deletes it for you."
        )


def _backups(stores: Stores) -> Backups:
    """Return the backups of a store.

    Raises:
        StorageError: It has none.
    """
    if stores.backups is None:
        msg = (
            f"memories in {stores.engine} are backed up with its own tools; use those, or memoryos-mcp export FILE and "
            "memoryos-mcp import FILE for one user"
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
        amount(summary.pages, "page") + (f", the last of {last.astimezone():%Y-%m-%d %H:%M}" if last else "") + damaged
    )
