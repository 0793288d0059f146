"""The view Now: who the user is, what was learned recently, and the state of the background work."""

import asyncio
from datetime import datetime, timedelta

from starlette.responses import Response

from memoryos_mcp.model.knowledge import LEARNED_BY_USER, Fact, Kind, is_head
from memoryos_mcp.server.web.visits import Visit, get

NEWEST_FACTS = 10
# Facts in each of the other lists, so that the page stays small after a large import.
FACTS_AT_MOST = 30
TRAITS = 8
LATELY = timedelta(days=7)


async def now(visit: Visit) -> Response:
    """Show the user's main facts, wishes and traits, the newest other facts, the newest pages, and the background work.

    Another list contains the facts of all kinds that were said or corrected in the last seven days, so a fact can
    appear twice. If a list is long, only its newest facts are shown.
    """
    engine = visit.engine
    profile, stats, failures, newest = await asyncio.gather(
        engine.profile(), engine.stats(), engine.failures(), engine.listed(limit=5, is_by_time=True)
    )
    since = visit.memories.now() - LATELY
    facts = [*profile.user_facts, *profile.assistant_facts]
    others = [fact for fact in facts if fact.kind is not Kind.WISH and not is_head(fact.slot)]
    lately = [fact for fact in facts if _said_at(fact)[0] >= since]
    return visit.page(
        "now.html",
        heads=[fact for fact in facts if is_head(fact.slot)][-FACTS_AT_MOST:],
        wishes=[fact for fact in facts if fact.kind is Kind.WISH][: -FACTS_AT_MOST - 1 : -1],
        newest_facts=sorted(others, key=_said_at, reverse=True)[:NEWEST_FACTS],
        lately=sorted(lately, key=_said_at, reverse=True)[:FACTS_AT_MOST],
        lately_left=len(lately[FACTS_AT_MOST:]),
        traits=profile.traits[:TRAITS],
        stats=stats,
        failures=failures,
        newest=newest.entries,
        now=visit.memories.now(),
    )


def _said_at(fact: Fact) -> tuple[datetime, int]:
    said = fact.valid_from if fact.last_said is None else fact.last_said[0]
    return max(said, fact.valid_from) if fact.learned_by == LEARNED_BY_USER else said, fact.fact


ADDRESSES = (get("/", now),)
