"""The view Now: who the user is, what was learned recently, and the state of the background work."""

import asyncio
from datetime import timedelta

from starlette.responses import Response

from memoryos_mcp.model.knowledge import LEARNED_BY_USER, Fact, Kind, is_head
from memoryos_mcp.web.visits import Visit, get

NEWEST_FACTS = 10
TRAITS = 8
LATELY = timedelta(days=7)


async def now(visit: Visit) -> Response:
    """Show the user's main facts, wishes and traits, the newest facts and pages, and the state of the background work.

    Facts that were said in the last seven days are also shown.
    """
    engine = visit.engine
    profile, stats, failures, newest = await asyncio.gather(
        engine.profile(), engine.stats(), engine.failures(), engine.listed(limit=5, is_by_time=True)
    )
    since = visit.memories.now() - LATELY
    facts = [*profile.user_facts, *profile.assistant_facts]
    others = [fact for fact in facts if fact.kind is not Kind.WISH and not is_head(fact.slot)]
    lately = [fact for fact in facts if fact.last_said is not None and fact.last_said[0] >= since]
    return visit.page(
        "now.html",
        heads=[fact for fact in facts if is_head(fact.slot)],
        wishes=[fact for fact in facts if fact.kind is Kind.WISH][::-1],
        newest_facts=sorted(others, key=_said_at, reverse=True)[:NEWEST_FACTS],
        lately=sorted(lately, key=_said_at, reverse=True),
        traits=profile.traits[:TRAITS],
        stats=stats,
        failures=failures,
        newest=newest.entries,
        now=visit.memories.now(),
    )


def _said_at(fact: Fact) -> float:
    said = fact.valid_from if fact.last_said is None else fact.last_said[0]
    return max(said, fact.valid_from).timestamp() if fact.learned_by == LEARNED_BY_USER else said.timestamp()


ADDRESSES = (get("/", now),)
