"""Checks of Python, the data folder and the user's memory."""

import platform
import sys

import anyio.to_thread

from memoryos_mcp.cli.commands.doctor.checks import Check, Verdict, failed, parts
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_told
from memoryos_mcp.storage.paths import database_file
from memoryos_mcp.storage.sqlite.backup import check_copy, check_texts
from memoryos_mcp.storage.sqlite.database import SQLITE_AT_LEAST, sqlite_version
from memoryos_mcp.storage.sqlite.file_header import look_at_header

# Versions for which the dependencies have wheels.
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
BITS = 64 if sys.maxsize > 2**32 else 32


def check_python() -> Check:
    """Check whether the server supports this Python."""
    found = f"{platform.python_version()}, {BITS} bits, {sys.executable}"
    if BITS == 64 and OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return Check(name="python", verdict=Verdict.OK, found=found)
    oldest, newest = (".".join(map(str, version)) for version in (OLDEST_PYTHON, NEWEST_PYTHON))
    fix = f"install a 64-bit Python from {oldest} to {newest}, and the server in an environment of that"
    return Check(name="python", verdict=Verdict.FAIL if BITS == 32 else Verdict.WARN, found=found, fix=fix)


async def check_folder(settings: Settings) -> Check:
    """Check whether the data folder can be written."""
    try:
        await anyio.to_thread.run_sync(check_data_folder, settings)
    except ConfigError as error:
        return failed("data_folder", error)
    return Check(name="data_folder", verdict=Verdict.OK, found=f"{settings.data_storage_path} can be written")


async def check_memory(settings: Settings) -> Check:
    """Check the user's whole memory for damage, if there is one."""
    name, version = "memory", sqlite_version()
    if tuple(map(int, version.split("."))) < SQLITE_AT_LEAST:
        found = f"SQLite {version} is older than {'.'.join(map(str, SQLITE_AT_LEAST))}"
        return Check(name=name, verdict=Verdict.FAIL, found=found, fix="reinstall the package apsw")
    path = database_file(settings.data_storage_path, settings.user_id)
    try:
        await anyio.to_thread.run_sync(look_at_header, path)
        is_there = await anyio.Path(path).exists() and (await anyio.Path(path).stat()).st_size > 0
        if not is_there:
            found = f"SQLite {version}; {settings.user_id} has none yet, the first page makes it"
            return Check(name=name, verdict=Verdict.OK, found=found)
        memory = await anyio.to_thread.run_sync(check_copy, path)
        await anyio.to_thread.run_sync(check_texts, path)
    except StorageError as error:
        found, fix = parts(error)
        fix = fix or "memoryos-mcp restore FILE puts a backup in its place"
        return Check(name=name, verdict=Verdict.FAIL, found=found, fix=fix)
    except OSError as error:
        found = f"{path} cannot be read ({error.strerror or type(error).__name__})"
        return Check(name=name, verdict=Verdict.FAIL, found=found, fix="see to its permissions")
    if memory.damaged:
        found = f"of {memory.pages:,} pages in {path} {damage_told(memory.damaged)}, and their text is withheld"
        return Check(name=name, verdict=Verdict.FAIL, found=found, fix=DAMAGE_FIX)
    found = f"SQLite {version}; {memory.user_id}: {memory.pages:,} pages in {path}, sound"
    if settings.retention_days is not None and memory.retention_waits_until is not None:
        until = memory.retention_waits_until.astimezone(settings.zone).isoformat(timespec="minutes")
        found += f"; pages older than retention_days are forgotten from {until} on"
        fix = "to keep them set the clock right, or raise retention_days"
        return Check(name=name, verdict=Verdict.WARN, found=found, fix=fix)
    return Check(name=name, verdict=Verdict.OK, found=found)
