"""The command ``memoryos-mcp move``: copy memories from files to PostgreSQL, or from PostgreSQL to files."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from anyio import to_thread
from pydantic import BaseModel, SecretStr

from memoryos_mcp.cli.commands.common import ALL_PAGES, Show, progress_on_stderr
from memoryos_mcp.cli.terminal import note, one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.config.checks import database_url
from memoryos_mcp.config.masks import without_credentials
from memoryos_mcp.config.sources import check_data_folder
from memoryos_mcp.errors import ArgumentError, ConfigError, DamagedStoreError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.interface import Store, Stores
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import CopyOutcome, Fingerprint, StoreOptions
from memoryos_mcp.text.amounts import amount

OPTION = "--to"
DATABASES = ("postgresql://", "postgres://")
# A copy reads the memory in one thread, and looks for changes of other processes in another.
THREADS = 3
_OCCUPIED = (
    "the target contains another memory of this user, or an earlier copy of this memory, which has changed since; "
    "choose another target, or delete the memory there first"
)
_CHANGING = "other processes keep changing this memory; stop the servers, then run the command again"
_MISSING = "this user has no memory; check the user id"
_Check = Callable[[], None]


class MovedMemory(BaseModel, frozen=True):
    """The result of moving the memory of one user.

    Attributes:
        state: ``moved``, ``already_moved`` (the target already contained a copy), ``would_move`` (only in a dry run),
            or ``failed``.
        rows: Number of rows of each kind, such as ``pages``. Kinds without rows are left out. Empty if the move failed.
        sha256: Hash of all rows of the memory. A complete copy has the same hash. None if the move failed.
        problem: Why the move failed, and what to do. None if the move did not fail.
    """

    user_id: str
    state: str
    rows: dict[str, int] = {}
    sha256: str | None = None
    problem: str | None = None


class MoveReport(BaseModel, frozen=True):
    """The result of a move, or of a dry run. ``tokens`` is the number of access tokens that were or would be moved."""

    source: str
    target: str
    is_dry_run: bool
    users: list[MovedMemory]
    tokens: int
    next_step: str | None


async def move(
    settings: Settings, target: str, *, user_ids: Sequence[str], is_dry_run: bool, as_json: bool = False
) -> None:
    """Copy memories and access tokens from the configured folder or database to ``target``, and print a report.

    The memory of each user is copied in one transaction. A memory that the target already contains is not copied again.
    The command can therefore be repeated after an interruption.

    Args:
        settings: The settings, which specify where the memories are now.
        target: The address of a PostgreSQL database, or a folder.
        user_ids: The users whose memories are copied. If empty, the memories of all users are copied.
        is_dry_run: If True, nothing is copied, and the report says what would be copied.
        as_json: Whether to print the report as one JSON object.

    Raises:
        ArgumentError: The target is not valid.
        StorageError: Some memories could not be copied; the printed report lists them. If the source or the target
            itself cannot be used, no report is printed.
    """
    there = _target_settings(settings, target)
    if not is_dry_run and there.database_url is None:
        with _naming_target():
            check_data_folder(there)
    done: list[MovedMemory] = []
    try:
        with _opened(settings) as source, _opened(there, is_target=True) as opened:
            moving = _Move(source, opened, settings, is_dry_run=is_dry_run)
            with progress_on_stderr("rows") as show:
                await moving.run(list(dict.fromkeys(user_ids)), show, done)
            tokens = await moving.tokens(user_ids)
    except (StorageError, asyncio.CancelledError):
        if finished := sum(each.state == "moved" for each in done):
            note(f"the move stopped after {amount(finished, 'user')}; run the same command again to continue")
        raise
    problems = [f"{one_line(each.user_id)}: {each.problem}" for each in done if each.problem]
    report = MoveReport(
        source=_shown(settings),
        target=_shown(there),
        is_dry_run=is_dry_run,
        users=done,
        tokens=tokens,
        next_step=None if is_dry_run or problems else _next_step(settings, there),
    )
    print_report(report, _lines(report), as_json=as_json)
    if problems:
        raise StorageError("; ".join(problems))


class _Move:
    """Copies memories and tokens from one open storage to another. A dry run only finds out what would be copied."""

    def __init__(self, source: Stores, target: Stores, settings: Settings, *, is_dry_run: bool) -> None:
        self._source = source
        self._target = target
        self._is_dry_run = is_dry_run
        # With this capacity, opening a memory changes nothing.
        self._options = StoreOptions(
            assistant_id=settings.assistant_id,
            short_term_capacity=ALL_PAGES,
            session_gap_s=settings.session_gap_s,
            knowledge_capacity=settings.long_term_knowledge_capacity,
        )

    async def run(self, user_ids: Sequence[str], show: Show, done: list[MovedMemory]) -> None:
        """Move the memories of the users, or of all users if ``user_ids`` is empty. Append each result to ``done``."""
        is_source = await to_thread.run_sync(self._source.is_made)
        with _naming_target():
            is_target = await to_thread.run_sync(self._target.is_made)
        chosen = user_ids or (await to_thread.run_sync(self._source.users) if is_source else [])
        check = _stopping()
        for number, user_id in enumerate(chosen, start=1):
            step = f"{one_line(user_id)} ({number:,} of {len(chosen):,})"

            def tell(finished: int, total: int, step: str = step) -> None:
                check()
                show(step, finished, total)

            if not is_source or await to_thread.run_sync(self._source.footprint, user_id) is None:
                done.append(MovedMemory(user_id=user_id, state="failed", problem=_MISSING))
                continue
            try:
                work = self._plan(user_id, tell, is_target=is_target) if self._is_dry_run else self._move(user_id, tell)
                done.append(await work)
            except DamagedStoreError as error:
                done.append(MovedMemory(user_id=user_id, state="failed", problem=str(error)))

    async def tokens(self, user_ids: Sequence[str]) -> int:
        """Copy the users' access tokens, and return the number of tokens. In a dry run, only count the tokens.

        If ``user_ids`` is empty, the tokens of all users are copied.
        """
        chosen = set(user_ids) or None
        if not await to_thread.run_sync(self._source.is_made):
            return 0
        if self._is_dry_run:
            entries = await to_thread.run_sync(self._source.tokens.entries)
            return sum(chosen is None or entry.user_id in chosen for entry in entries)
        return await to_thread.run_sync(self._source.tokens.copy_to, self._target.tokens, chosen)

    async def _move(self, user_id: str, tell: Callable[[int, int], None]) -> MovedMemory:
        source = await self._source.open(user_id, self._options, only_reads=True)
        try:
            with _naming_target():
                target = await self._target.open(user_id, self._options)
            try:
                copy = await source.copy_to(target, tell)
            finally:
                await target.close()
        finally:
            await source.close()
        if copy.fingerprint is None:
            problem = _OCCUPIED if copy.outcome is CopyOutcome.OCCUPIED else _CHANGING
            return MovedMemory(user_id=user_id, state="failed", problem=problem)
        return _memory(user_id, "moved" if copy.outcome is CopyOutcome.COPIED else "already_moved", copy.fingerprint)

    async def _plan(self, user_id: str, tell: Callable[[int, int], None], *, is_target: bool) -> MovedMemory:
        """Return the expected result of `_move`. Nothing is copied."""
        here = await self._fingerprint(self._source, user_id, tell)
        if not is_target or await to_thread.run_sync(self._target.footprint, user_id) is None:
            return _memory(user_id, "would_move", here)
        there = await self._fingerprint(self._target, user_id, tell)
        if there.is_copy_of(here):
            return _memory(user_id, "already_moved", here)
        if there.is_empty:
            return _memory(user_id, "would_move", here)
        return MovedMemory(user_id=user_id, state="failed", problem=_OCCUPIED)

    async def _fingerprint(self, stores: Stores, user_id: str, tell: Callable[[int, int], None]) -> Fingerprint:
        store: Store = await stores.open(user_id, self._options, only_reads=True)
        try:
            return await store.fingerprint(tell)
        finally:
            await store.close()


def _memory(user_id: str, state: str, found: Fingerprint) -> MovedMemory:
    rows = {name: count for name, count in found.rows.items() if count}
    return MovedMemory(user_id=user_id, state=state, rows=rows, sha256=found.sha256)


def _target_settings(settings: Settings, target: str) -> Settings:
    """Return settings for which ``target`` is the configured database or folder.

    Raises:
        ArgumentError: The target is not a valid address or folder, or it is where the memories are now.
    """
    if target.strip().startswith(DATABASES):
        try:
            there = settings.model_copy(update={"database_url": database_url(SecretStr(target))})
        except ValueError as error:
            raise ArgumentError(argument=OPTION, problem=str(error)) from None
    elif "://" in target or not target.strip():
        problem = "the target must be an address that begins with postgresql://, or the path of a folder"
        raise ArgumentError(argument=OPTION, problem=problem)
    else:
        folder = Path(target).expanduser().absolute()
        there = settings.model_copy(update={"database_url": None, "data_storage_path": folder})
    if _place(there) == _place(settings):
        raise ArgumentError(argument=OPTION, problem="the target is where the memories are now; choose another target")
    return there


def _place(settings: Settings) -> str:
    if settings.database_url is None:
        return str(settings.data_storage_path.resolve())
    parts = urlsplit(settings.database_url.get_secret_value())
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}?{parts.query}"


def _shown(settings: Settings) -> str:
    url = settings.database_url
    return str(settings.data_storage_path) if url is None else str(without_credentials(url.get_secret_value()))


@contextmanager
def _opened(settings: Settings, *, is_target: bool = False) -> Iterator[Stores]:
    if is_target:
        with _naming_target():
            stores = make_stores(settings, utc_now, threads=THREADS)
    else:
        stores = make_stores(settings, utc_now, threads=THREADS)
    try:
        yield stores
    finally:
        stores.close()


@contextmanager
def _naming_target() -> Iterator[None]:
    """In errors that the ``with`` block raises, replace the names of settings with ``--to``."""
    try:
        yield
    except ArgumentError as error:
        if error.argument != "database_url":
            raise
        raise ArgumentError(argument=OPTION, problem=error.problem) from error
    except (ConfigError, DamagedStoreError, StorageError) as error:
        text = str(error)
        for name in ("database_url", "data_storage_path"):
            text = text.replace(name, OPTION)
        raise type(error)(text) from error


def _stopping() -> _Check:
    """Return a function that raises `StorageError` if the command was stopped. Any thread can call the function."""
    task = asyncio.current_task()

    def check() -> None:
        if task is not None and task.cancelling():
            msg = "the command was stopped; run the same command again to continue"
            raise StorageError(msg)

    return check


def _next_step(settings: Settings, there: Settings) -> str:
    if there.database_url is not None:
        change = "set database_url to this database"
    else:
        unset = "unset database_url, and " if settings.database_url is not None else ""
        change = f"{unset}set data_storage_path to {there.data_storage_path}"
    return (
        f"{change[0].upper()}{change[1:]} for all servers and commands, then start the servers. The memories in "
        f"{_shown(settings)} were not changed. Delete them when you no longer need them."
    )


def _lines(report: MoveReport) -> Iterator[str]:
    yield f"From: {report.source}"
    yield f"To: {report.target}"
    for each in report.users:
        name = one_line(each.user_id)
        content = f"{amount(each.rows.get('pages', 0), 'page')}, {amount(each.rows.get('facts', 0), 'fact')}"
        if each.state == "moved":
            yield f"{name}: {content}; moved, and both sides are the same (SHA-256 {str(each.sha256)[:16]}...)"
        elif each.state == "already_moved":
            yield f"{name}: {content}; already moved"
        elif each.state == "would_move":
            yield f"{name}: {content}; would be moved"
        else:
            yield f"{name}: not moved: {each.problem}"
    if not report.users:
        yield "There are no memories to move."
    if report.tokens:
        yield f"Access tokens: {report.tokens:,}"
    if report.is_dry_run:
        yield "This was a dry run; nothing was changed."
    if report.next_step:
        yield report.next_step
