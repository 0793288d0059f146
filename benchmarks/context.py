"""The context that an assistant gets for a question: how much of the needed content, in how many tokens.

Run ``python -m benchmarks.context --data FILE``. Each conversation gets a server process of its own, and each question
is a call with a query and a budget. A gold page counts as shown if a reply contains any of it, as whole if it contains
all of it, and as known if it is whole or supports a fact in the reply. The benchmark also prints the share of a
conversation's pages that are in its largest topic. For `benchmarks/life`, it prints how well the learned facts match
the labels, as `benchmarks.statements` does.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.asking import FedServer, feed, shown
from benchmarks.client import ServerError, running_server
from benchmarks.datasets import SET_APART, Conversation, Dataset, DatasetError, Question, load
from benchmarks.learned import learn
from benchmarks.metrics import mean
from benchmarks.retrieval import SERVER_FLAGS
from benchmarks.statements import LIFE, Judged, judge_life
from memoryos_mcp.model.pages import estimate_tokens

BUDGETS = (2_000, 1_000)
_RULES = """\
shown, whole, known: share of a question's gold pages, mean over questions, percent. tokens: size of the text for a \
model, at four bytes per token, and the size that the reply reports. pages: found and newest pages together."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Figures of one reply.

    Attributes:
        shown: Share of the gold pages of which it contains any text, 0 to 1.
        whole: Share that it contains without omissions.
        known: Share that it contains whole or that supports one of its facts.
        tokens: Tokens of its text.
        said_tokens: The number of tokens that it reports.
        pages: Number of pages, including the newest ones.
        facts: Number of facts.
    """

    conversation: str
    question: str
    budget: int
    shown: float
    whole: float
    known: float
    tokens: int
    said_tokens: int
    pages: int
    facts: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of a data set.

    Attributes:
        replies: Figures of the replies to each question at each budget.
        largest_topics: Share of pages in the largest topic, for each conversation, 0 to 1.
    """

    replies: Sequence[Shown]
    largest_topics: Mapping[str, float]


async def ask(fed: FedServer, conversation: str, question: Question, budget: int) -> Shown:
    """Return the figures of the reply to a question.

    Raises:
        ServerError: The server rejected the call.
    """
    reply = await fed.server.call("retrieve_memory", query=question.text, max_tokens=budget)
    content = reply.content
    pages = [*content["retrieved_pages"], *content["short_term_memory"]]
    facts = [*content["retrieved_user_knowledge"], *content["retrieved_assistant_knowledge"]]
    held = {fed.names[page["page_id"]] for page in pages}
    whole = {fed.names[page["page_id"]] for page in pages if not page["excerpt"]}
    rested_on = {fed.names[page_id] for fact in facts for page_id in fact["evidence"]}
    return Shown(
        conversation=conversation,
        question=question.text,
        budget=budget,
        shown=_share(question, held),
        whole=_share(question, whole),
        known=_share(question, whole | rested_on),
        tokens=estimate_tokens(reply.text),
        said_tokens=content["token_estimate"],
        pages=len(pages),
        facts=len(facts),
    )


def _share(question: Question, pages: set[str]) -> float:
    return len(pages.intersection(question.gold)) / len(question.gold)


async def run(dataset: Dataset, budgets: Sequence[int], replay: Path | None) -> Measured:
    """Return the figures of a data set: of the replies at each budget, and of topics.

    Args:
        dataset: Conversations with their questions.
        budgets: Tokens of a reply.
        replay: Recorded replies of an LLM that learns first; None learns without an LLM.
    """
    replies: list[Shown] = []
    largest: dict[str, float] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        for conversation in dataset.conversations:
            told, largest[conversation.id] = await _run_one(conversation, budgets, replay, progress)
            replies += told
    return Measured(replies, largest)


async def _run_one(
    conversation: Conversation, budgets: Sequence[int], replay: Path | None, progress: Progress
) -> tuple[list[Shown], float]:
    questions = [question for question in conversation.questions if question.category not in SET_APART]
    replies = []
    with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder:
        if replay is not None:
            learned = await learn(Path(folder), conversation, replay)
            progress.console.print(
                f"{conversation.id}: {learned.calls_per_page:.3f} calls, {learned.prompt_tokens_per_page:.0f} prompt "
                f"tokens a page, {len(learned.facts)} facts"
            )
        async with running_server(Path(folder), conversation.id, *SERVER_FLAGS) as server:
            fed = await feed(server, conversation, progress, conversation.id)
            stats = (await server.call("get_memory_stats")).content
            for budget in budgets:
                async with shown(progress, f"{conversation.id}: asking at {budget}", len(questions)) as bar:
                    for question in questions:
                        replies.append(await ask(fed, conversation.id, question, budget))
                        progress.advance(bar)
    return replies, _largest_topic(stats)


def _largest_topic(stats: Mapping[str, Any]) -> float:
    """Return the share of all pages that are in the largest topic."""
    largest: int = max((topic["page_count"] for topic in stats["top_segments"]), default=0)
    return largest / max(1, int(stats["total_pages"]))


def summary(replies: Iterable[Shown]) -> dict[str, float]:
    """Return the means over replies."""
    rows = [asdict(reply) for reply in replies]
    names = ("shown", "whole", "known", "tokens", "said_tokens", "pages", "facts")
    return {"questions": len(rows), **{name: mean([row[name] for row in rows]) for name in names}}


def print_table(console: Console, name: str, replies: Sequence[Shown]) -> None:
    """Print a line for each budget and conversation, and one for all of them."""
    table = Table(title=f"{name}, content of replies", title_justify="left")
    for column in ("budget", "conversation", "n", "shown", "whole", "known", "tokens", "said", "pages", "facts"):
        table.add_column(column, justify="left" if column == "conversation" else "right", no_wrap=True)
    for budget in sorted({reply.budget for reply in replies}, reverse=True):
        asked = [reply for reply in replies if reply.budget == budget]
        groups = {each: [reply for reply in asked if reply.conversation == each] for each in _names(asked)}
        for who, group in {**(groups if len(groups) > 1 else {}), "all": asked}.items():
            table.add_row(str(budget) if who == "all" else "", who, *_cells(summary(group)))
    console.print(table)
    console.print(f"[dim]{_RULES}[/dim]\n", highlight=False, soft_wrap=True)


def _names(replies: Iterable[Shown]) -> list[str]:
    return list(dict.fromkeys(reply.conversation for reply in replies))


def _cells(means: dict[str, float]) -> list[str]:
    shares = [f"{100 * means[name]:.1f}" for name in ("shown", "whole", "known")]
    counts = [f"{means[name]:.1f}" for name in ("pages", "facts")]
    return [f"{means['questions']}", *shares, f"{means['tokens']:.0f}", f"{means['said_tokens']:.0f}", *counts]


def print_topics(console: Console, largest: Mapping[str, float]) -> None:
    """Print the share of pages in each conversation's largest topic."""
    shares = ", ".join(f"{name} {share:.1%}" for name, share in largest.items())
    console.print(f"pages in the largest topic: {shares}", highlight=False, soft_wrap=True)


def print_facts(console: Console, judged: Judged) -> None:
    """Print how the learned facts compare with the labels."""
    console.print(
        f"facts: recall {judged.recall:.1%}, precision {judged.precision:.1%} of {len(judged.learned)}, learned from "
        f"what must teach nothing {len(judged.never)}, false days {len(judged.false_days)}\n",
        highlight=False,
        soft_wrap=True,
    )


def _report(
    dataset: Dataset, measured: Measured, judged: Judged | None, budgets: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield all figures of a data set, for each budget."""
    facts = {} if judged is None else {"facts_recall": judged.recall, "facts_precision": judged.precision}
    for budget in budgets:
        asked = [reply for reply in measured.replies if reply.budget == budget]
        yield {
            "dataset": dataset.name,
            "budget": budget,
            **summary(asked),
            "largest_topics": measured.largest_topics,
            **facts,
            "replies": list(map(asdict, asked)),
        }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="LoCoMo's JSON, a file in the neutral format or benchmarks/life/year.toml; may be given more than once.",
)
@click.option(
    "--budget",
    "budgets",
    type=click.IntRange(100, 1_000_000),
    multiple=True,
    default=BUDGETS,
    show_default=True,
    help="Tokens of a reply; may be given more than once.",
)
@click.option(
    "--replay",
    type=click.Path(dir_okay=False, resolve_path=True, path_type=Path),
    help="Learn from the recorded LLM replies in this file.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
def main(files: Sequence[Path], budgets: Sequence[int], replay: Path | None, json_file: Path | None) -> None:
    """Measure how much of the needed content replies contain, at given budgets."""
    output = Console()
    output = output if output.width >= 110 else Console(width=110)
    report: list[dict[str, Any]] = []
    try:
        for file, dataset in [(file, load(file)) for file in files]:
            measured = anyio.run(run, dataset, budgets, replay)
            print_table(output, dataset.name, measured.replies)
            print_topics(output, measured.largest_topics)
            judged = judge_life(replay) if file.resolve() == LIFE.resolve() / "year.toml" else None
            if judged is not None:
                print_facts(output, judged)
            report += _report(dataset, measured, judged, budgets)
    except (DatasetError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    if json_file:
        json_file.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
