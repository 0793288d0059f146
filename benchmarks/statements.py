"""Facts that are learned without an LLM: recall of wanted facts, and unwanted or untrue ones.

Run it as ``python -m benchmarks.statements``. It reads the made-up year of `benchmarks/life` page by page, as a server
does, and compares the facts with the labels. With ``--data FILE`` it reads other conversations instead. ``--draw``
prints random facts of them for review.
"""

import calendar
import random
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import click

from benchmarks.datasets import load
from benchmarks.learned import learn
from memoryos_mcp.llm.extractive.learning import learn_knowledge
from memoryos_mcp.model.knowledge import About, AddFact, Fact
from memoryos_mcp.model.pages import Page, Tier

LIFE = Path(__file__).parent / "life"
_DAY = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Learned:
    """A fact, and the pages from which it was learned, the first one first."""

    pages: tuple[str, ...]
    fact: AddFact | Fact


def learn_all(pages: Iterable[Page]) -> list[Learned]:
    """Return the facts of pages that are read one by one, with the facts of previous pages known."""
    known: dict[int, Fact] = {}
    learned: list[Learned] = []
    for page in pages:
        for change in learn_knowledge([page], list(known.values())):
            if isinstance(change, AddFact):
                learned.append(Learned((page.page_id,), change))
                for number in change.supersedes:
                    known.pop(number, None)
                fact = Fact(
                    fact=len(learned),
                    about=change.about,
                    text=change.text,
                    slot=change.slot,
                    valid_from=change.valid_from,
                    valid_until=change.valid_until,
                    evidence=(page.page_id,),
                    vector=None,
                    kind=change.kind,
                )
                known[fact.fact] = fact
    return learned


def life_pages(entries: Sequence[dict[str, Any]]) -> list[Page]:
    """Return the pages of the made-up year in order."""
    return [
        _page(number, entry["id"], entry["user"], entry["assistant"], entry["at"].replace(tzinfo=UTC))
        for number, entry in enumerate(entries, 1)
    ]


def _page(number: int, name: str, user: str, assistant: str, at: datetime) -> Page:
    return Page(
        seq=number,
        page_id=name,
        user_input=user,
        agent_response=assistant,
        occurred_at=at,
        session=1,
        tier=Tier.BACKLOG,
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """Comparison of the facts of the made-up year with its labels.

    Attributes:
        missed: Wanted facts that were not learned.
        kinds: By kind, the numbers of wanted facts and of learned ones among them.
        untrue: Facts that no label of their page confirms.
        never: Sentences from which a fact was learned although none must be.
        false_days: Facts with a date that was not said.
    """

    learned: tuple[Learned, ...]
    missed: tuple[str, ...]
    kinds: dict[str, tuple[int, int]]
    untrue: tuple[str, ...]
    never: tuple[str, ...]
    false_days: tuple[str, ...]

    @property
    def recall(self) -> float:
        """Share of the wanted facts that were learned, 0 to 1."""
        wanted = sum(count for _, count in self.kinds.values())
        return 1 - len(self.missed) / wanted

    @property
    def precision(self) -> float:
        """Share of the user's facts that are true, 0 to 1."""
        return 1 - len(self.untrue) / sum(each.fact.about is About.USER for each in self.learned)


def judge_life(replay: Path | None = None) -> Judged:
    """Read the made-up year and compare the facts with the labels.

    Args:
        replay: Recorded replies of an LLM; None reads the year without an LLM.

    Raises:
        ServerError: The file lacks replies.
    """
    entries = tomllib.loads((LIFE / "year.toml").read_text("utf-8"))["page"]
    labels = tomllib.loads((LIFE / "labels.toml").read_text("utf-8"))
    learned = learn_all(life_pages(entries)) if replay is None else _learned_from(replay)
    by_page: dict[str, list[str]] = {}
    for each in learned:
        if each.fact.about is About.USER:
            for page in each.pages:
                by_page.setdefault(page, []).append(each.fact.text)
    truths = {entry["id"]: entry["facts"] for entry in entries}
    days = {entry["id"]: entry.get("days", []) for entry in entries}
    said = {page.page_id: page for page in life_pages(entries)}
    asked, found, missed = Counter[str](), Counter[str](), []
    for label in labels["wanted"]:
        asked[label["kind"]] += 1
        if any(re.search(label["matches"], text) for text in by_page.get(label["page"], ())):
            found[label["kind"]] += 1
        else:
            missed.append(f"{label['page']} {label['kind']}: {label['matches']}")
    of_user = [each for each in learned if each.fact.about is About.USER]
    return Judged(
        learned=tuple(learned),
        missed=tuple(missed),
        kinds={kind: (found[kind], count) for kind, count in asked.items()},
        untrue=tuple(
            f"{each.pages[0]}: {each.fact.text}"
            for each in of_user
            if not any(_is_borne_out(each.fact.text, truths[page]) for page in each.pages)
        ),
        never=tuple(
            f"{label['page']}: {label['says']}"
            for label in labels["never"]
            if any(label["says"] in text for text in by_page.get(label["page"], ()))
        ),
        false_days=tuple(
            f"{each.pages[0]}: {each.fact.text}"
            for each in of_user
            if not set(_DAY.findall(each.fact.text)) <= {day for page in each.pages for day in days[page]}
            or not all(
                any(_is_said(time, said[page]) for page in each.pages)
                for time in (each.fact.said_since, each.fact.said_until)
                if time is not None
            )
        ),
    )


def _is_said(time: str, page: Page) -> bool:
    """Return whether a page mentions a year, month or day, or was said then."""
    if f"{page.occurred_at:%Y-%m-%d}".startswith(time):
        return True
    year, month, day = (*map(int, time.split("-")), 0, 0)[:3]
    if day:
        return re.search(rf"\b{day}(?:st|nd|rd|th)?\b", page.text) is not None
    return (calendar.month_name[month] if month else str(year)) in page.text


def _learned_from(replay: Path) -> list[Learned]:
    (conversation,) = load(LIFE / "year.toml").conversations
    with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder:
        learned = anyio.run(learn, Path(folder), conversation, replay)
    return [Learned(tuple(learned.names[page] for page in fact.evidence), fact) for fact in learned.facts]


def _is_borne_out(text: str, truths: Sequence[Sequence[str]]) -> bool:
    return any(all(re.search(pattern, text) for pattern in patterns) for patterns in truths)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Other conversations.")
@click.option("--draw", type=click.IntRange(0), default=0, show_default=True, help="Number of random facts to print.")
@click.option(
    "--replay",
    type=click.Path(dir_okay=False, resolve_path=True, path_type=Path),
    help="Read the year with the recorded LLM replies in this file.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed.")
def main(data: Path | None, draw: int, replay: Path | None, seed: int) -> None:
    """Print figures of facts learned without an LLM: recall and precision, or facts per 1,000 turns and a sample."""
    if data is None:
        judged = judge_life(replay)
        learned: Sequence[Learned] = judged.learned
        _tell(judged)
    else:
        learned = _learn_file(data)
    drawn = random.Random(seed).sample(learned, min(draw, len(learned)))  # noqa: S311 - a draw to read
    for each in drawn:
        told = f"{each.fact.about} {each.fact.kind} {each.fact.slot or '-'}"
        sys.stdout.write(f"{each.pages[0]}\t{told}\t{each.fact.text}\n")


def _learn_file(data: Path) -> list[Learned]:
    learned: list[Learned] = []
    turns = 0
    started = perf_counter()
    for conversation in load(data).conversations:
        pages = [
            _page(number, page.page_id, page.user_input, page.agent_response, page.timestamp)
            for number, page in enumerate(conversation.pages, 1)
        ]
        turns += sum(bool(page.user_input) + bool(page.agent_response) for page in pages)
        learned += learn_all(pages)
    took_ms = (perf_counter() - started) * 1e3
    per_page = took_ms / max(1, turns / 2)
    sys.stdout.write(
        f"{data.stem}: {len(learned)} facts of {turns:,} turns, {1e3 * len(learned) / turns:.0f} per 1,000; "
        f"{per_page:.1f} ms a page\n"
    )
    return learned


def _tell(judged: Judged) -> None:
    lines = [f"{'kind':12} learned of wanted"]
    lines += [f"{kind:12} {found:7} of {count}" for kind, (found, count) in judged.kinds.items()]
    lines += [
        f"recall {judged.recall:.1%}, precision {judged.precision:.1%} of {len(judged.learned)} facts, "
        f"taught by what must not teach {len(judged.never)}, false days {len(judged.false_days)}"
    ]
    for what, which in (("missed", judged.missed), ("untrue", judged.untrue), ("never", judged.never)):
        lines += [f"{what}: {text}" for text in which]
    lines += [f"false day: {text}" for text in judged.false_days]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
