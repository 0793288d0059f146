"""Checks of Python, the data folder, the vector index and the user's memory."""

import importlib
import platform
import sys
from contextlib import closing

import anyio.to_thread

from memoryos_mcp.cli.commands.doctor.checks import Check, failed, failed_by, passed, warned
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.retrieval.index.choice import FAISS, PGVECTOR, choose_index
from memoryos_mcp.retrieval.strategies import choose_strategy
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.stores import make_stores

# The oldest and the newest version for which all dependencies have wheels.
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
BITS = 64 if sys.maxsize > 2**32 else 32


def check_python() -> Check:
    """Check whether the server supports this version of Python."""
    found = f"{platform.python_version()}, {BITS}-bit, {sys.executable}"
    if BITS == 64 and OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return passed("python", found)
    oldest, newest = (".".join(map(str, version)) for version in (OLDEST_PYTHON, NEWEST_PYTHON))
    fix = f"install a 64-bit Python, version {oldest} to {newest}, and reinstall the server with it"
    return (failed if BITS == 32 else warned)("python", found, fix)


async def check_folder(settings: Settings) -> Check:
    """Check whether the data folder is writable. The check passes if no data folder is needed."""
    if not settings.needs_data_folder:
        return passed("data_folder", "not needed, because memories are stored in a database and llm_log is false")
    try:
        await anyio.to_thread.run_sync(check_data_folder, settings)
    except ConfigError as error:
        return failed_by("data_folder", error)
    return passed("data_folder", f"{settings.data_storage_path} is writable")


async def check_vector_index(settings: Settings) -> Check:
    """Check whether the configured vector index can be used."""
    name = "vector_index"

    def check() -> None:
        make = choose_index(settings)
        if settings.vector_index == FAISS:
            importlib.import_module("faiss")
        if settings.vector_index == PGVECTOR:
            with closing(make_stores(settings, utc_now)) as stores:
                stores.prepare_vector_index()
        elif (check_index := getattr(make, "check", None)) is not None:
            check_index()

    try:
        await anyio.to_thread.run_sync(check)
    except (ConfigError, StorageError) as error:
        return failed_by(name, error)
    return passed(name, f"{settings.vector_index} can be used")


async def check_strategy(settings: Settings) -> Check:
    """Check whether the configured retrieval strategy can be loaded."""
    name = "retrieval_strategy"
    try:
        await anyio.to_thread.run_sync(choose_strategy, settings.retrieval_strategy)
    except ConfigError as error:
        return failed_by(name, error)
    return passed(name, f"{settings.retrieval_strategy} can be used")


async def check_memory(settings: Settings) -> Check:
    """Check the whole memory of the configured user for damage."""
    name = "memory"
    with closing(make_stores(settings, utc_now)) as stores:
        try:
            memory = await anyio.to_thread.run_sync(stores.examine, settings.user_id)
        except StorageError as error:
            return failed_by(name, error)
    if memory is None:
        return passed(name, f"{stores.engine}; {settings.user_id} has no memory yet; the first page will create it")
    if memory.damaged:
        damage = damage_message(memory.damaged)
        found = f"{memory.place} has {memory.pages:,} pages; {damage}, and damaged text is not shown"
        return failed(name, found, DAMAGE_FIX)
    found = f"{stores.engine}; {memory.user_id}: {memory.pages:,} pages in {memory.place}, no damage"
    if settings.retention_days is not None and memory.retention_waits_until is not None:
        until = memory.retention_waits_until.astimezone(settings.zone).isoformat(timespec="minutes")
        found += f"; pages older than retention_days will be forgotten after {until}"
        return warned(name, found, "to keep these pages, correct the clock or raise retention_days")
    return passed(name, found)
