"""The view Search: the memories that an assistant gets for a question, and the reasons for their rank."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from memoryos_mcp.engine.validation import TOKENS_AT_LEAST, check_range
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import estimate_tokens
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.retrieval.budget import roots
from memoryos_mcp.retrieval.fitting import TOKENS_AT_MOST
from memoryos_mcp.retrieval.recall import Recall, RecalledPage
from memoryos_mcp.retrieval.rendering import grouped, left_out_text, recall_text
from memoryos_mcp.server.web.charts import SignedBar, signed_bars
from memoryos_mcp.server.web.visits import Visit, get

BAR_WIDTH = 120.0
DIGITS_AT_MOST = 9
# The signals of `retrieval.ranking` in words.
SIGNALS = {
    "cover": "how much of the question its best passage covers",
    "first_cover": "how much of the question its first passage covers",
    "first_window": "how near the meaning of its first passage is",
    "best_window": "how near the meaning of its best passage is",
    "words": "words of the question on it; rare words count more",
    "foreign_words": "words of the question on it; used because the question is not in English",
    "word_cover": "how many different words of the question are on it",
    "own_words": "words of the question, said by the one who is asked about",
    "words_around": "words of the question on the pages beside it",
    "told": "how near the facts that were learned from it are",
    "time": "how near its day is to the time in the question",
    "like_best": "how similar it is to the best pages, because the question asks how something went",
    "lead": "how early in its conversation it is, because the question asks how something went",
    "project": "how much a page of the question's project is preferred",
    "spread": "lower, because a better page of the same conversation ranks higher",
}
# What the problems of arguments are about.
_FIELDS = {"query": "The question", "tokens": "The first budget", "tokens2": "The second budget"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that the search found.

    Attributes:
        why: The signals that contribute to the page's score, the largest contribution first. Each has a name, a
            description, a value and a bar.
    """

    found: RecalledPage
    why: Sequence[tuple[str, str, float, SignedBar]]


@dataclass(frozen=True, slots=True)
class Context:
    """The text that a client gets for one token budget.

    Attributes:
        budget: The budget in tokens.
        tokens: The number of tokens in the text.
        left_out: What did not fit, as part of a sentence; None if everything fits.
        needed: A budget with which nothing would be left out; None if everything fits.
    """

    budget: int
    text: str
    tokens: int
    left_out: str | None
    needed: int | None


async def search(visit: Visit) -> Response:
    """Show what is found for a question, why, and the text that a client would get for two token budgets.

    Unlike the searches of assistants, this view does not change the heat of topics.
    """
    query = visit.asked("q")
    default = visit.memories.settings.retrieval_max_tokens
    given = {"tokens": str(default), "tokens2": str(max(TOKENS_AT_LEAST, default // 2))}
    given |= {name: visit.asked(name) for name in given if visit.asked(name).strip()}
    values: dict[str, Any] = {"query": query, "given": given, "lowest": TOKENS_AT_LEAST, "highest": TOKENS_AT_MOST}
    if not query.strip():
        return visit.page("search.html", recall=None, problem=None, **values)
    try:
        budgets = [_tokens(name, text) for name, text in given.items()]
        recall, other = await visit.engine.compare_budgets(query, budgets)
    except ArgumentError as error:
        problem = f"{_FIELDS.get(error.argument, error.argument)} {error.problem}."
        return visit.page("search.html", 400, recall=None, problem=problem, **values)
    return visit.page(
        "search.html",
        problem=None,
        recall=recall,
        topics=list(_topics(recall)),
        contexts=[_context(budget, each) for budget, each in zip(budgets, (recall, other), strict=True)],
        found=roots(recall.asked.subject),
        unknown=[word for word, count in recall.asked.counts.items() if not count],
        heats={segment.segment: heat for segment, heat in recall.segments},
        bar_width=BAR_WIDTH,
        **values,
    )


def _tokens(name: str, text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_AT_MOST):
        raise ArgumentError(argument=name, problem="is not a whole number; use at most nine digits")
    check_range(name, int(text), TOKENS_AT_LEAST, TOKENS_AT_MOST)
    return int(text)


def _topics(recall: Recall) -> Iterator[tuple[Segment | None, list[Hit]]]:
    """Yield each topic with its pages, the topic with the best page first. Pages without a topic come last."""
    bars = dict(
        zip(
            (page.page.seq for page in recall.pages),
            signed_bars([[*page.shares.values()] for page in recall.pages], BAR_WIDTH),
            strict=True,
        )
    )
    for _, pages in grouped(recall.pages, has_topics=True):
        yield pages[0].segment, [Hit(page, _why(page, bars[page.page.seq])) for page in pages]


def _why(page: RecalledPage, bars: Sequence[SignedBar]) -> list[tuple[str, str, float, SignedBar]]:
    shares = [
        (name, SIGNALS.get(name, ""), share, bar)
        for (name, share), bar in zip(page.shares.items(), bars, strict=True)
        if round(share, 2)
    ]
    return sorted(shares, key=lambda each: -abs(each[2]))


def _context(budget: int, recall: Recall) -> Context:
    text, left_out = recall_text(recall), recall.left_out
    return Context(
        budget=budget,
        text=text,
        tokens=estimate_tokens(text),
        left_out=None if left_out is None else left_out_text(left_out),
        needed=None if left_out is None else left_out.max_tokens,
    )


ADDRESSES = (get("/search", search),)
