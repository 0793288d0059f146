"""The cost of thousands of imported facts for a question, and whether each fact is still found.

Run it as ``python -m benchmarks.facts``. Made-up facts, as another system exports them, are imported by the command,
embedded by a server in the background. Some random facts are then queried by their own words and by other words. The
benchmark fails if an answer does not contain the fact.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from benchmarks.figures import POLL_S, percentile_ms
from benchmarks.pipe import Pipe, memory_server, opened
from benchmarks.synthetic import USER_ID, Grammar, write_memory
from memoryos_mcp.embedding.bundled import BundledEmbedder

PAGES = 1_000
QUERIES = 200
READY_AFTER_S = 600.0
# The capacity in the paper.
PAPERS = ("--long-term-knowledge-capacity", "100")
WHO = (
    "Nadia Omar Lucia Peter Mei Ravi Greta Tomas Aisha Bruno Chloe Diego Elena Felix Hana Igor Jonas Katya Luca Marta "
    "Nils Olga Pablo Quinn Rosa Samir Tessa Umar Vera Willem Yusuf Zoe Anton Bianca Carlos Dora Emre Fatima "
    "Goran Helga Ines Javier Kofi Leila Magnus Nora Oskar Priya"
).split()
# Sentences with paraphrases, and things with other names.
FORMS = (
    (
        "{who} is allergic to {what}",
        "{what} make {who} ill",
        "peanuts/groundnuts cats/felines shrimps/prawns dogs/hounds walnuts/nuts eggs/omelettes grass/lawns wasps/bees",
    ),
    (
        "{who} works as a {what}",
        "the profession of {who}: {what}",
        "physician/doctor attorney/lawyer teacher/schoolmaster nurse/carer programmer/coder chef/cook "
        "carpenter/woodworker cop/policeman journalist/reporter",
    ),
    (
        "{who} recently bought a new {what}",
        "which {what} did {who} purchase",
        "bicycle/bike sofa/couch car/automobile laptop/notebook-computer phone/mobile television/TV stove/cooker "
        "fridge/refrigerator piano/keyboard-instrument rucksack/backpack",
    ),
    (
        "{who} grew up in {what}",
        "the childhood of {who} in {what}",
        "France/Paris Japan/Tokyo Germany/Berlin Egypt/Cairo Portugal/Lisbon Poland/Warsaw Canada/Ottawa Peru/Lima "
        "Kenya/Nairobi Sweden/Stockholm",
    ),
    (
        "{who} spends weekends on {what}",
        "{who} has a hobby: {what}",
        "photography/taking-pictures jogging/running angling/fishing painting/art hiking/walking-in-the-mountains "
        "gardening/growing-plants chess/board-games sewing/making-clothes cycling/riding-a-bike cinema/movies",
    ),
    (
        "{who} is afraid of {what}",
        "{what} frighten {who}",
        "serpents/snakes airplanes/flights heights/tall-towers spiders/arachnids dentists/tooth-doctors "
        "thunderstorms/lightning needles/injections crowds/many-people",
    ),
    (
        "{who} has appointments for {what}",
        "when does {who} go for {what}",
        "haircuts/the-barber X-rays/radiography interviews/a-talk-with-an-employer vaccinations/injections "
        "massages/back-treatment",
    ),
    (
        "{who} would like to learn {what}",
        "{what} is something that {who} wants to study",
        "Spanish/the-language-of-Madrid Python/programming cooking/preparing-meals swimming/moving-in-water "
        "singing/vocal-music pottery/making-vases Mandarin/Chinese accounting/bookkeeping",
    ),
)


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A fact and its paraphrase."""

    text: str
    otherwise: str


def made_up() -> list[MadeUp]:
    """Return all possible facts without repeats, always in the same order."""
    facts = [
        MadeUp(said.format(who=who, what=thing), otherwise.format(who=who, what=other.replace("-", " ")))
        for said, otherwise, things in FORMS
        for thing, other in (pair.split("/") for pair in things.split())
        for who in WHO
    ]
    random.Random(1).shuffle(facts)  # noqa: S311 - made-up data
    return facts


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--facts", "count", type=click.IntRange(100, 3_000), default=3_000, show_default=True, help="Number of facts."
)
@click.option("--drawn", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Number of queried facts.")
@click.option("--seed", type=int, default=None, help="Random seed.  [default: a new one each time]")
def main(count: int, drawn: int, seed: int | None) -> None:
    """Import made-up facts into a memory of 1,000 pages, query some of them, and time questions."""
    facts = made_up()[:count]
    seed = random.randrange(10_000) if seed is None else seed  # noqa: S311 - made-up data
    few, default, papers = (
        asyncio.run(_measured(facts[-100:], [], ())),
        asyncio.run(_measured(facts, random.Random(seed).sample(facts, drawn), ())),  # noqa: S311 - made-up data
        asyncio.run(_measured(facts, random.Random(seed).sample(facts, drawn), PAPERS)),  # noqa: S311 - made-up data
    )
    for what, found in (
        ("100 facts, all current", few),
        (f"{count:,} facts, all current", default),
        (f"{count:,} facts, 100 current and the others archived", papers),
    ):
        ratio = found.p50_ms / few.p50_ms
        told = f"retrieve_memory p50 {found.p50_ms:.1f} ms ({ratio:.2f} x), after a change {found.again_ms:.0f} ms"
        sys.stdout.write(f"{what}: {told}\n")
    for which, found in (("current", default), ("mostly archived", papers)):
        for way, missed in found.missed.items():
            told = f"; not: {'; '.join(missed)}" if missed else ""
            sys.stdout.write(f"{which}, found by {way}: {drawn - len(missed)} of {drawn} (seed {seed}){told}\n")
    sys.exit(1 if any(default.missed.values()) or any(papers.missed.values()) else 0)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Figures of a memory with a number of facts.

    Attributes:
        p50_ms: Median time of questions.
        again_ms: Time of the first question after a fact has changed.
        missed: The facts that were not found, by kind of question.
    """

    p50_ms: float
    again_ms: float
    missed: dict[str, list[str]]


async def _measured(facts: Sequence[MadeUp], drawn: Sequence[MadeUp], settings: tuple[str, ...]) -> _Measured:
    grammar = Grammar(random.Random(2))  # noqa: S311 - made-up data
    with tempfile.TemporaryDirectory(prefix="memoryos-facts-") as name:
        embedder = BundledEmbedder()
        await write_memory(Path(name), PAGES, embedder, lambda _: None)
        await embedder.aclose()
        await asyncio.to_thread(_import, facts, Path(name), settings)
        async with opened(*memory_server(name, USER_ID), *settings) as server, asyncio.timeout(READY_AFTER_S):
            while not (await server.call("get_memory_stats")).content["is_settled"]:
                await asyncio.sleep(POLL_S)
            while (await server.call("retrieve_memory", query="warm up")).content["search_mode"] != "hybrid":
                await asyncio.sleep(POLL_S)
            questions = [await server.call("retrieve_memory", query=grammar.question()) for _ in range(QUERIES)]
            missed = {
                "its own words": [f.text for f in drawn if f.text not in await _told(server, f.text)],
                "other words": [f.otherwise for f in drawn if f.text not in await _told(server, f.otherwise)],
            }
            await server.call("correct_memory", id="k100", text="Has just been corrected")
            again = await server.call("retrieve_memory", query=grammar.question())
        return _Measured(percentile_ms([each.took_s for each in questions], 50), again.took_s * 1e3, missed)


def _import(facts: Sequence[MadeUp], folder: Path, settings: tuple[str, ...]) -> None:
    """Import facts as another system exports them, each a minute newer than the one before."""
    start = datetime.now(UTC) - timedelta(days=30)
    memories = [
        {"id": str(n), "memory": fact.text, "created_at": (start + timedelta(minutes=n)).isoformat()}
        for n, fact in enumerate(facts)
    ]
    file = folder / "facts.json"
    file.write_text(json.dumps({"results": memories}), "utf-8")
    command = [sys.executable, "-m", "memoryos_mcp", "import", str(file), "--data-storage-path", str(folder)]
    done = subprocess.run(
        [*command, "--user-id", USER_ID, *settings], check=True, capture_output=True, encoding="utf-8"
    )
    sys.stdout.write("\n".join(done.stdout.splitlines()) + "\n")


async def _told(server: Pipe, query: str) -> set[str]:
    reply = await server.call("retrieve_memory", query=query)
    return {fact["knowledge"] for fact in reply.content["retrieved_user_knowledge"]}


if __name__ == "__main__":
    main()
