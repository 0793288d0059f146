"""Projects: what a memory with five projects finds, beside five memories, and what passes the walls.

``python -m benchmarks.projects --data locomo10.json`` adds the first 200 pages of five conversations as five projects
of one memory, and each conversation to a memory of its own. It prints the recall of the first 10 pages in both, and the
memories of other projects that were returned with the setting ``project_isolation``. No LLM is used.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.datasets import Conversation, Question, load
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.retrieval.recall import Recall

PROJECTS, PAGES, FOUND = 5, 200, 10
TOKENS = 100_000
SHARED = "shared"
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Project:
    """The first pages of a conversation, and the questions that these pages answer."""

    name: str
    conversation: Conversation
    questions: Sequence[Question]


def projects_of(conversations: Sequence[Conversation]) -> list[Project]:
    """Return the projects of the first conversations. A shorter conversation has fewer pages."""
    projects = []
    for conversation in conversations[:PROJECTS]:
        known = {page.page_id for page in conversation.pages[:PAGES]}
        questions = [question for question in conversation.questions if known.issuperset(question.gold)]
        projects.append(Project(conversation.id, conversation, questions))
    return projects


@asynccontextmanager
async def opened(folder: Path, *, is_walled: bool) -> AsyncIterator[MemoryService]:
    """Open the memories in a folder."""
    settings = Settings(
        data_storage_path=folder, short_term_capacity=0, consolidation_idle_s=0.0, project_isolation=is_walled
    )
    async with MemoryService(settings) as service:
        yield service


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def fed(engine: MemoryEngine, project: Project, name: str | None) -> dict[str, str]:
    """Add the pages of a project, and return the ids in the data set by the ids in the memory."""
    ids = {}
    for page in project.conversation.pages[:PAGES]:
        receipt = await engine.add(page.user_input, page.agent_response, timestamp=page.timestamp, project=name)
        ids[receipt.page_id] = page.page_id
    return ids


async def settled(engine: MemoryEngine) -> None:
    """Wait until the background work of a memory is done."""
    while not (stats := await engine.stats()).is_settled or not stats.is_semantic or stats.counts.unembedded:
        await asyncio.sleep(POLL_S)


async def recall_of(engine: MemoryEngine, project: Project, name: str | None, ids: dict[str, str]) -> float:
    """Return the mean share of the gold pages that are among the first pages, in percent."""
    shares = []
    for question in project.questions:
        recall = await _asked(engine, question, name)
        found = {ids.get(each.page.page_id) for each in recall.pages}
        shares.append(len(found.intersection(question.gold)) / len(question.gold))
    return 100 * sum(shares) / len(shares)


async def leaks_of(engine: MemoryEngine, project: Project, own: Collection[str]) -> Counter[str]:
    """Return how many memories of other projects the questions of a project return, by kind."""
    leaks = Counter(pages=0, topics=0, facts=0, traits=0)
    for question in project.questions:
        recall = await _asked(engine, question, project.name)
        leaks["pages"] += sum(each.page.page_id not in own for each in [*recall.pages, *recall.short_term])
        leaks["topics"] += sum(segment.project != project.name for segment, _ in recall.segments)
        facts = [each.fact for each in (*recall.wishes, *recall.user_facts, *recall.assistant_facts)]
        leaks["facts"] += sum(not {*fact.evidence} & {*own} for fact in facts)
        leaks["traits"] += sum(not {*own}.issuperset(trait.evidence) for trait in recall.traits)
    return leaks


async def _asked(engine: MemoryEngine, question: Question, project: str | None) -> Recall:
    return await engine.retrieve(question.text, max_results=FOUND, max_tokens=TOKENS, is_visit=False, project=project)


async def run(data: Path, folder: Path) -> None:
    """Feed the memories, ask the questions, and print the figures."""
    projects = projects_of(load(data).conversations)
    ids: dict[str, dict[str, str]] = {}
    lost: list[tuple[int, float, float]] = []
    async with opened(folder, is_walled=False) as service, service.user(SHARED) as shared:
        for project in projects:
            ids[project.name] = await fed(shared, project, project.name)
        await settled(shared)
        for project in projects:
            async with service.user(project.name) as alone:
                own = await fed(alone, project, None)
                await settled(alone)
                before = await recall_of(alone, project, None, own)
            after = await recall_of(shared, project, project.name, ids[project.name])
            lost.append((len(project.questions), before, after))
            show(
                f"{project.name}: {len(project.questions)} questions, recall@{FOUND} alone {before:.1f}, "
                f"as a project {after:.1f}",
            )
    questions = sum(count for count, _, _ in lost)
    alone_mean, shared_mean = (sum(row[0] * row[place] for row in lost) / questions for place in (1, 2))
    show(
        f"all: {questions} questions, alone {alone_mean:.1f}, as projects {shared_mean:.1f}, "
        f"lost {alone_mean - shared_mean:.1f} points"
    )
    leaks = Counter[str]()
    async with opened(folder, is_walled=True) as service, service.user(SHARED) as shared:
        await settled(shared)
        for project in projects:
            leaks.update(await leaks_of(shared, project, ids[project.name]))
    show(f"returned from other projects with walls: {dict(leaks)}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="LoCoMo's conversations.",
)
def main(data: Path) -> None:
    """Measure what projects find in one memory, and what passes the walls between them."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(data, Path(folder)))


if __name__ == "__main__":
    main()
