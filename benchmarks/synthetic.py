"""Made-up memories of any size: sentences from a small grammar; real vectors for some, noisy copies for others."""

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import Passage
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.model.knowledge import Lessons
from memoryos_mcp.model.pages import Page, Tier, Turn, utc_now
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.store import SqliteStore
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import ChainPlan, Filing, Learning, PageQuery, SegmentPlan, StoreOptions, Vectors

USER_ID = "default_user"
PAGES_PER_WRITE = 2_000
BASE_TEXTS = 400
SEGMENTS = 100
# With this deviation per coordinate a vector keeps a cosine of about 0.8 to the real one it was made from.
NOISE = 0.04
OPTIONS = StoreOptions("default_assistant_profile", 7, 1800, 100)

_PEOPLE = "my sister|my neighbour|our teacher|a friend from work|my cousin|the doctor|an old colleague|my flatmate"
_ACTS = "repaired|painted|sold|bought|planted|cooked|cleaned|lost|found|built|photographed|borrowed|carried|measured"
_THINGS = (
    "the bicycle|a wooden boat|the kitchen shelf|three tomato plants|a violin|the garden fence|an old radio|"
    "a blue kettle|"
    "the winter coat|a chess set|the camera|a clay bowl|the tent|a pair of skis|the lamp|a map of the coast|the piano"
)
_PLACES = "in Lisbon|by the river|at the market|near the station|in the mountains|at home|on the island|at school"
_TIMES = "yesterday|last week|in spring|on Monday|before breakfast|after the concert|in October|two years ago|tonight"
_VIEWS = "It took hours|It was great fun|It cost too much|Nobody noticed|It rained all day|We laughed a lot|I was tired"


@dataclass(frozen=True, slots=True)
class Grammar:
    """Generates texts; the same seed gives the same texts."""

    random: random.Random

    def sentence(self) -> str:
        """Return a sentence of about fifteen words, one of them rare."""
        pick = self.random.choice
        person, act, thing = pick(_PEOPLE.split("|")), pick(_ACTS.split("|")), pick(_THINGS.split("|"))
        place, when, view = pick(_PLACES.split("|")), pick(_TIMES.split("|")), pick(_VIEWS.split("|"))
        rare = "".join(pick("bdfgklmnprstvz") + pick("aeiou") for _ in range(3))
        return f"{person.capitalize()} {act} {thing} {place} {when} with {rare}. {view}."

    def turn(self, at: datetime) -> Turn:
        """Return a turn: two short sentences, and an answer of three."""
        user = " ".join(self.sentence() for _ in range(2))
        return Turn(user, " ".join(self.sentence() for _ in range(3)), at)

    def question(self) -> str:
        """Return a question of about eight words."""
        pick = self.random.choice
        return f"When did {pick(_PEOPLE.split('|'))} have {pick(_THINGS.split('|'))} {pick(_PLACES.split('|'))}?"


async def write_memory(
    folder: Path, pages: int, embedder: BundledEmbedder, on_written: Callable[[int], None]
) -> NDArray[np.float32]:
    """Write a memory to files through the store, and return its vectors, shape ``(pages, dimension)``.

    Args:
        folder: The data folder.
        pages: Number of pages, at least one.
        embedder: Computes the real vectors.
        on_written: Called with the number of pages of each transaction.
    """
    threads = StoreThreads(2)
    opened = await SqliteStore.open(folder, USER_ID, OPTIONS, threads=threads, clock=utc_now)
    vectors = await write_pages(opened, pages, embedder, on_written)
    threads.close()
    return vectors


async def write_pages(
    opened: Store, pages: int, embedder: BundledEmbedder, on_written: Callable[[int], None]
) -> NDArray[np.float32]:
    """Write pages to an empty store and close it. Return their vectors, shape ``(pages, dimension)``.

    Args:
        opened: The store.
        pages: Number of pages, at least one.
        embedder: Computes the real vectors.
        on_written: Called with the number of pages of each transaction.
    """
    base_texts = min(pages, BASE_TEXTS)
    grammar, noise = Grammar(random.Random(pages)), np.random.default_rng(pages)  # noqa: S311 - made-up data
    store = await opened.in_space(embedder.identity, embedder.model.to_json())
    turns = [grammar.turn(utc_now()) for _ in range(base_texts)]
    base = [each[0] for each in await embedder.embed_pages([Passage(t.user_input, t.agent_response) for t in turns])]
    kinds = noise.integers(0, base_texts, pages)
    vectors = np.stack([window.vector for window in base])[kinds]
    vectors += noise.normal(0, NOISE, vectors.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    start = datetime.now(UTC) - timedelta(minutes=10 * pages)
    for first in range(0, pages, PAGES_PER_WRITE):
        count = min(PAGES_PER_WRITE, pages - first)
        await store.add_pages([grammar.turn(start + timedelta(minutes=10 * (first + n))) for n in range(count)])
        lease = await store.take_lease(60)
        if lease is None:
            message = "another process works on the benchmark's own store"
            raise RuntimeError(message)
        windows = {
            seq: [replace(base[kinds[seq - 1]], vector=vectors[seq - 1])] for seq in range(first + 1, first + count + 1)
        }
        await store.commit(lease, Vectors(pages=windows))
        waiting = [page.seq for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=PAGES_PER_WRITE + 10))]
        known = len(await store.segments())
        segments = [
            SegmentPlan(
                segment=place + 1 if place < known else None,
                pages=tuple(waiting[place::SEGMENTS]),
                digest=Digest((f"topic{place}", "made", "up"), "Made up."),
                vector=vectors[waiting[place] - 1],
                summariser="benchmark",
            )
            for place in range(min(SEGMENTS, len(waiting)))
        ]
        chains = [ChainPlan(None, tuple(waiting[n : n + 5]), "Made up.") for n in range(0, len(waiting), 5)]
        await store.commit(lease, Filing(chains=chains, segments=segments, organiser="benchmark"))
        # Only retrieval is measured, so the server must have no background work.
        for segment in await store.segments():
            read = await store.pages(
                PageQuery(segment=segment.segment, is_newest=True, is_unanalysed=True, limit=PAGES_PER_WRITE)
            )
            await store.commit(lease, _nothing_learned(read, segment.segment))
        await store.commit(lease, _nothing_learned(await store.pages(PageQuery(is_unread=True))))
        await store.release_lease(lease)
        on_written(count)
    await store.close()
    return vectors


def _nothing_learned(read: Sequence[Page], *segments: int) -> Learning:
    """Return a step that marks pages as read for knowledge, and those of segments also for the profile."""
    seqs = [page.seq for page in read]
    return Learning(segments=segments, pages=seqs, lessons=Lessons((), ()), traits=(), learner="benchmark")


def copy_memory(source: Path, folder: Path, user: str) -> None:
    """Write a memory as a copy of another one.

    Args:
        source: The data folder of a memory that `write_memory` has written.
        folder: The data folder to copy to.
        user: The user of the copy.
    """
    path = database_file(folder, user)
    path.parent.mkdir(parents=True)
    shutil.copyfile(database_file(source, USER_ID), path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE meta SET value = ? WHERE key = 'user_id'", (user,))
    connection.close()
