"""The view Status: how a memory is stored, searched and organised, and what the LLM costs."""

import asyncio
import platform
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from anyio import to_thread
from starlette.responses import Response

import memoryos_mcp
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.stats import UsageEntry
from memoryos_mcp.server.web import charts
from memoryos_mcp.server.web.visits import Visit, get

USAGE_DAYS = 30
# What each background loop does, as shown to people.
WORK = {
    "embedding": "Computing vectors, for search by meaning",
    "reading": "Reading new pages for facts",
    "consolidation": "Sorting pages into topics",
    "redo": "Doing again with the LLM what was done without it",
    "promotion": "Reading topics for the profile",
    "visits": "Counting which topics are used",
    "forgetting": "Removing what was forgotten",
    "verification": "Checking the memory for damage",
}


@dataclass(frozen=True, slots=True)
class Work:
    """A kind of background work, and its state in words."""

    name: str
    state: str
    is_failing: bool


@dataclass(frozen=True, slots=True)
class DayUsage:
    """The LLM usage of one day."""

    day: str
    calls: int = 0
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Number of tokens of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens


async def status(visit: Visit) -> Response:
    """Show the state of the memory and of the program. Only the operator sees settings and paths."""
    engine = visit.engine
    stats, storage, entries = await asyncio.gather(engine.stats(), engine.storage(), engine.llm_usage(USAGE_DAYS))
    is_operator = visit.machine is not None or visit.session.caller.is_admin
    days = _days(visit, entries)
    clients, clients_problem = await _clients(visit)
    return visit.page(
        "status.html",
        stats=stats,
        storage=storage,
        settings=visit.memories.settings,
        shown_settings=visit.memories.settings.public() if is_operator else {},
        is_operator=is_operator,
        work=await _work(visit),
        days=days,
        chart=charts.bar_chart([(day.day, day.tokens) for day in days]),
        clients=clients,
        clients_problem=clients_problem,
        versions={"memoryos-mcp": memoryos_mcp.__version__, "Python": platform.python_version()},
    )


def _days(visit: Visit, entries: Sequence[UsageEntry]) -> list[DayUsage]:
    """Return the LLM usage on each of the last `USAGE_DAYS` days, the oldest first."""
    of_day = defaultdict[str, list[UsageEntry]](list)
    for entry in entries:
        of_day[entry.day].append(entry)
    today = visit.memories.now().date()
    names = [(today - timedelta(days=age)).isoformat() for age in range(USAGE_DAYS - 1, -1, -1)]
    return [
        DayUsage(
            name,
            calls=sum(entry.calls for entry in of_day[name]),
            failed_calls=sum(entry.failed_calls for entry in of_day[name]),
            prompt_tokens=sum(entry.prompt_tokens for entry in of_day[name]),
            completion_tokens=sum(entry.completion_tokens for entry in of_day[name]),
        )
        for name in names
    ]


async def _work(visit: Visit) -> list[Work]:
    failures = await visit.engine.failures()
    found = []
    for loop, name in WORK.items():
        failure = failures.get(loop)
        if failure is None:
            found.append(Work(name, "Never failed.", is_failing=False))
            continue
        at = f"{failure.at.astimezone(visit.memories.settings.zone):%Y-%m-%d %H:%M}"
        attempts = failure.attempts
        times = "" if attempts < 2 else f", {attempts} times in a row"
        failed = f"Failed at {at}{times}: {failure.error}"
        state = failed if attempts else f"Works again. {failed}"
        found.append(Work(name, state, is_failing=attempts > 0))
    return found


async def _clients(visit: Visit) -> tuple[Sequence[tuple[str, str]], str]:
    """Return the MCP clients on the person's machine. If they cannot be read, return an empty list and the reason."""
    if visit.machine is None:
        return [], "This server cannot see the programs on your machine. There, run memoryos-mcp install."
    try:
        return await to_thread.run_sync(visit.machine.clients), ""
    except MemoryOSError as error:
        return [], str(error)


ADDRESSES = (get("/status", status),)
