"""Facts are extracted from each new page at once, before it is organised."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from memoryos_mcp.storage.sqlite.paths import database_file
from tests.memories import NO_MODEL, POLL_S, UNFILED, USER, Memory, Said, memory
from tests.servers import PipeServer, wait_until

STATED = {
    "I am allergic to penicillin.": "allergic to penicillin",
    "I live in Utrecht.": "live in Utrecht",
    "My favourite colour is green.": "green",
}
# For each kind of statement: the text, and the expected part of the fact. The last one is said by the assistant.
KINDS = {
    "name, work and place": ("Hi! I'm Tom, I work as a data scientist in San Francisco.", ("Tom", "data scientist")),
    "age": ("I'm 38 years old.", ("38",)),
    "origin": ("I'm originally from Ghana.", ("Ghana",)),
    "family": ("My husband is called Kofi.", ("Kofi",)),
    "pets": ("We have a greyhound named Pixel.", ("greyhound", "Pixel")),
    "health": ("I have asthma.", ("asthma",)),
    "diet": ("I can't eat shellfish.", ("shellfish",)),
    "likes": ("I love long train rides.", ("train rides",)),
    "habits": ("I go swimming every Tuesday.", ("swimming every Tuesday",)),
    "tools": ("I use Fedora.", ("Fedora",)),
    "possessions": ("I drive an old Volvo.", ("Volvo",)),
    "plans": ("My driving test is on 9 June.", ("driving test", "9 June")),
    "birthday": ("My birthday is on 14 July.", ("14 July",)),
    "wishes": ("Remember that my code reviews should never contain emojis.", ("code reviews", "never")),
    "promises": ("Could you help me with the plants?", ("remind you", "Friday")),
}
PROMISE = "I'll remind you to water the plants every Friday."
SMALL_TALK = [
    "Nice weather today, isn't it?",
    "Thanks, that was helpful!",
    "What would you do if you lived in Rome?",
    "Haha, good one.",
    'He said: "I live in Paris."',
]


# No page is filed, so that facts come from short-term memory.
RECENT = {**UNFILED, "short_term_capacity": 20}
LIMIT_S = 10


async def known(opened: Memory, count: int) -> list[str]:
    """Wait for a number of facts about the user, and return their texts."""
    async with asyncio.timeout(LIMIT_S):
        while len(facts := (await opened.engine.profile()).user_facts) < count:  # noqa: ASYNC110 - another task's state
            await asyncio.sleep(POLL_S)
    return [fact.text for fact in facts]


async def test_statements_of_a_new_user_are_in_the_profile_at_once(data: Path) -> None:
    async with memory(data, None, **RECENT) as opened:
        await opened.add(Said(said) for said in (*SMALL_TALK, *STATED))
        facts = await known(opened, len(STATED))
    assert len(facts) == len(STATED)
    for words in STATED.values():
        assert any(words in fact for fact in facts)


def test_each_kind_of_statement_is_in_the_profile(data: Path) -> None:
    with PipeServer(data, NO_MODEL) as server:
        for kind, (said, _) in KINDS.items():
            server.add(said, PROMISE if kind == "promises" else "Noted.")
        for said in SMALL_TALK:
            server.add(said)

        def facts() -> list[dict[str, Any]]:
            profile = server.call("get_user_profile", include_assistant_knowledge=True)
            return [*profile["user_knowledge"], *profile["assistant_knowledge"]]

        # The first statement contains name, work and place.
        wait_until(lambda: len(facts()) >= len(KINDS) + 2, "each statement is known", LIMIT_S)
        found = facts()
    for _, words in KINDS.values():
        assert all(any(word in fact["knowledge"] for fact in found) for word in words)
    assert len(found) == len(KINDS) + 2
    assert any("San Francisco" in fact["knowledge"] and "data" not in fact["knowledge"] for fact in found)


async def test_unread_pages_are_read_in_the_background(data: Path) -> None:
    async with memory(data, None, **RECENT) as opened:
        await opened.add(map(Said, STATED))
        assert len(await known(opened, len(STATED))) == len(STATED)
    with closing(apsw.Connection(str(database_file(data, USER)))) as connection:
        connection.execute("DELETE FROM fact_evidence; DELETE FROM facts; UPDATE pages SET read_by = NULL")
    async with memory(data, None, **RECENT) as opened:
        assert len(await known(opened, len(STATED))) == len(STATED)
