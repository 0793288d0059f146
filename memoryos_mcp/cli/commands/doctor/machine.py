"""Checks of Python, the data folder and the user's memory."""

import platform
import sys
from contextlib import closing

import anyio.to_thread

from memoryos_mcp.cli.commands.doctor.checks import Check, Verdict, failed
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.stores import make_stores

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
    name = "memory"
    with closing(make_stores(settings, utc_now)) as stores:
        try:
            memory = await anyio.to_thread.run_sync(stores.examine, settings.user_id)
        except StorageError as error:
            return failed(name, error)
    if memory is None:
        found = f"{stores.engine}; {settings.user_id} has none yet, the first page makes it"
        return Check(name=name, verdict=Verdict.OK, found=found)
    if memory.damaged:
        found = (
            f"of {memory.pages:,} pages in {memory.place} {damage_message(memory.damaged)}, and their text is withheld"
        )
        return Check(name=name, verdict=Verdict.FAIL, found=found, fix=DAMAGE_FIX)
    found = f"{stores.engine}; {memory.user_id}: {memory.pages:,} pages in {memory.place}, sound"
    if settings.retention_days is not None and memory.retention_waits_until is not None:
        until = memory.retention_waits_until.astimezone(settings.zone).isoformat(timespec="minutes")
        found += f"; pages older than retention_days are forgotten from {until} on"
        fix = "to keep them set the clock right, or raise retention_days"
        return Check(name=name, verdict=Verdict.WARN, found=found, fix=fix)
    return Check(name=name, verdict=Verdict.OK, found=found)
