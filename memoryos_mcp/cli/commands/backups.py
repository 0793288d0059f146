"""The commands ``memoryos-mcp backup``, which works while servers run, and ``memoryos-mcp restore``."""

import json
import secrets
from datetime import UTC, datetime
from pathlib import Path

import click

from memoryos_mcp.cli.commands.common import progress_on_stderr
from memoryos_mcp.cli.terminal import one_line, prepare_stdout
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError, DamagedStoreError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_told
from memoryos_mcp.storage.paths import DATABASE_NAME, database_file, kept_name
from memoryos_mcp.storage.sqlite.backup import Copy, check_copy, make_copy, put_in_place, user_files
from memoryos_mcp.text.amounts import amount


def back_up(settings: Settings, target: Path, *, is_of_all: bool, as_json: bool) -> None:
    """Copy the configured user's memory, or every user's, and print what was copied.

    The target is a new file, or a folder in which files are named by user and time. For all users it is a folder.

    Raises:
        ArgumentError: The file exists already, or its folder does not.
        StorageError: A memory is missing or damaged, or cannot be copied; the others are copied anyway.
    """
    prepare_stdout()
    sources = (
        user_files(settings.data_storage_path, DATABASE_NAME)
        if is_of_all
        else [database_file(settings.data_storage_path, settings.user_id)]
    )
    is_folder = _makes_folder(target, is_of_all=is_of_all)
    copied, problems = list[tuple[Path, Copy]](), list[str]()
    with progress_on_stderr("parts") as show:
        for source in sources:
            file = target / f"{source.parent.name}-{_stamp(utc_now())}.db" if is_folder else target
            try:
                if not source.exists():
                    msg = f"there is no memory of {settings.user_id} in {settings.data_storage_path}"
                    raise StorageError(msg)  # noqa: TRY301 - reported with the others
                copy = make_copy(source, file, lambda done, total: show("copying", done, total), is_in_use=True)
            except StorageError as error:
                problems.append(str(error))
            else:
                copied.append((file, copy))
                if copy.damaged:
                    problems.append(f"{source}: {damage_told(copy.damaged)}, in the copy too; {DAMAGE_FIX}")
    if as_json:
        copies = [{"file": str(file), **_told(copy)} for file, copy in copied]
        click.echo(json.dumps({"copies": copies, "problems": problems}))
    else:
        for file, copy in copied:
            click.echo(f"{file}: {amount(copy.pages, 'page')} of {one_line(copy.user_id)}, checked")
    if problems:
        raise StorageError("; ".join(problems))


def _makes_folder(target: Path, *, is_of_all: bool) -> bool:
    """Return whether copies go into a folder, which is created if it is missing.

    Raises:
        ArgumentError: The file exists already, or its folder does not.
    """
    is_folder = is_of_all or target.is_dir()
    if target.exists() and not target.is_dir():
        raise ArgumentError(argument=str(target), problem="is there already; name a new file, or a folder")
    if is_folder:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not target.parent.is_dir():
        raise ArgumentError(argument=str(target), problem="is in a folder that is not there; make it, or name another")
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
    try:
        found = check_copy(copy)
    except DamagedStoreError as error:
        why = str(error).removeprefix(f"{copy} is damaged ").partition("; ")[0]
        msg = f"{copy} is not a backup, or a damaged one {why}; nothing was changed. Name one of `memoryos-mcp backup`"
        raise DamagedStoreError(msg) from error
    if found.user_id != settings.user_id:
        problem = f"is the memory of {found.user_id}, not of {settings.user_id}; give --user-id, or another file"
        raise ArgumentError(argument=str(copy), problem=problem)
    target = database_file(settings.data_storage_path, settings.user_id)
    there = _there(target)
    kept = target.with_name(kept_name(_stamp(utc_now()))) if target.exists() else None
    if is_confirmed:
        target.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.restored")
        try:
            with progress_on_stderr("parts") as show:
                make_copy(copy, beside, lambda done, total: show("copying", done, total), is_in_use=False)
            put_in_place(beside, target, kept or target)
        finally:
            beside.unlink(missing_ok=True)
    if as_json:
        told = {"is_done": is_confirmed, "backup": _told(found), "replaced": None if there is None else _told(there)}
        click.echo(json.dumps({**told, "kept_as": str(kept) if is_confirmed and kept else None}))
        return
    click.echo(f"Backup: {_in_words(found)}")
    click.echo(f"{'Replaced' if is_confirmed else 'Would replace'}: {_in_words(there) if kept else 'nothing'}")
    if not is_confirmed:
        click.echo("Nothing was changed. Stop the servers of this memory, and run the command again with --yes.")
    elif kept:
        click.echo(
            f"The memory before is kept as {kept}. Delete it once you are content; only "
            "forgetting everything does it for you."
        )


def _there(target: Path) -> Copy | None:
    """Return a summary of the current memory; None if it is missing or cannot be read."""
    if not target.exists():
        return None
    try:
        return check_copy(target)
    except StorageError:
        return None


def _told(copy: Copy) -> dict[str, object]:
    last = copy.last_added_at
    return {
        "user_id": copy.user_id,
        "pages": copy.pages,
        "last_added_at": last.isoformat() if last else None,
        "damaged_pages": list(copy.damaged),
    }


def _in_words(copy: Copy | None) -> str:
    if copy is None:
        return "a file that cannot be read"
    last = copy.last_added_at
    damaged = f"; {damage_told(copy.damaged)}" if copy.damaged else ""
    return amount(copy.pages, "page") + (f", the last of {last.astimezone():%Y-%m-%d %H:%M}" if last else "") + damaged


def _stamp(moment: datetime) -> str:
    """Return a time in the form used in file names."""
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%S%f}Z"
