"""What a user says is known at once: read from each page as it comes, in short-term memory and in cold topics alike."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from memoryos_mcp.storage.paths import database_file
from tests.servers import USER, PipeServer, wait_until

STATED = {
    "I am allergic to penicillin.": "allergic to penicillin",
    "I live in Utrecht.": "live in Utrecht",
    "My favourite colour is green.": "green",
}
# For each kind of statement: what is said, and what of it is to be known. The last is said by the assistant.
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


def known(server: PipeServer) -> list[str]:
    return [fact["knowledge"] for fact in server.call("get_user_profile")["user_knowledge"]]


def test_what_a_new_user_says_is_in_the_profile_at_once_and_small_talk_is_not(data: Path) -> None:
    with PipeServer(data) as server:
        for said in (*SMALL_TALK, *STATED):
            server.add(said)
        wait_until(lambda: len(known(server)) >= len(STATED), "the statements are known", 10)
        facts = known(server)
    assert len(facts) == len(STATED)
    for words in STATED.values():
        assert any(words in fact for fact in facts)


def test_each_kind_of_statement_is_in_the_profile(data: Path) -> None:
    with PipeServer(data) as server:
        for kind, (said, _) in KINDS.items():
            server.add(said, PROMISE if kind == "promises" else "Noted.")
        for said in SMALL_TALK:
            server.add(said)

        def facts() -> list[dict[str, Any]]:
            profile = server.call("get_user_profile", include_assistant_knowledge=True)
            return [*profile["user_knowledge"], *profile["assistant_knowledge"]]

        # The first statement tells the name, the work and the place.
        wait_until(lambda: len(facts()) >= len(KINDS) + 2, "each statement is known", 10)
        found = facts()
    for _, words in KINDS.values():
        assert all(any(word in fact["knowledge"] for fact in found) for word in words)
    assert len(found) == len(KINDS) + 2
    assert any("San Francisco" in fact["knowledge"] and "data" not in fact["knowledge"] for fact in found)


def test_pages_that_were_never_read_are_read_in_the_background(data: Path) -> None:
    with PipeServer(data) as server:
        for said in STATED:
            server.add(said)
        wait_until(lambda: len(known(server)) == len(STATED), "the statements are known", 10)
    with closing(apsw.Connection(str(database_file(data, USER)))) as connection:
        connection.execute("DELETE FROM fact_evidence; DELETE FROM facts; UPDATE pages SET read_by = NULL")
    with PipeServer(data) as server:
        wait_until(lambda: len(known(server)) == len(STATED), "they are known again", 10)
