"""The view Profile and facts: traits and facts with their evidence and history, and their correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict
from urllib.parse import urlencode

from starlette.responses import Response

from memoryos_mcp.engine.correcting import REASON_MAX_CHARS, TEXT_MAX_CHARS
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.ids import Kind, numbered_id, trait_id
from memoryos_mcp.model.knowledge import LEARNED_BY_USER, About
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Level
from memoryos_mcp.model.views import FactView, MemoryView, PageView, State, TraitView
from memoryos_mcp.retrieval.budget import quote, roots
from memoryos_mcp.server.web.charts import Period, period_chart
from memoryos_mcp.server.web.guard import PREFIX
from memoryos_mcp.server.web.visits import Visit, get, memory_path, number, post

FACTS_AT_ONCE = 30
EVIDENCE_AT_ONCE = 8
EXCERPT_TOKENS = 120


class Change(TypedDict, total=False):
    """Arguments of `MemoryEngine.correct`."""

    text: str
    level: str
    reason: str | None
    is_wrong: bool
    is_restored: bool


# The list -----------------------------------------------------------------------------------------------------------


async def profile(visit: Visit) -> Response:
    """Show the traits, and the facts that have the chosen state (such as superseded), newest first."""
    state, about, cursor = visit.asked("state", State.CURRENT), visit.asked("about"), visit.asked("cursor")
    part = await visit.engine.listed(tier="knowledge", state=state, about=about, cursor=cursor, limit=FACTS_AT_ONCE)
    views = await visit.engine.look([entry.id for entry in part.entries]) if part.entries else []
    has_traits = not cursor and state == State.CURRENT and about != About.ASSISTANT
    older = part.cursor and urlencode({"state": state, "about": about, "cursor": part.cursor})
    return visit.page(
        "fact_list.html" if visit.is_part else "profile.html",
        facts=[view for view in views if isinstance(view, FactView)],
        traits=await visit.engine.traits() if has_traits else None,
        past_traits=await visit.engine.past_traits() if not cursor and state == State.SUPERSEDED else [],
        state=state,
        about=about,
        is_first=not cursor,
        older=older,
    )


# One fact or trait --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Draft:
    """A person's correction that is not stored yet.

    Attributes:
        problem: Why the correction was refused, as text for the person; empty if it was not refused.
        status: The HTTP status of the page that shows the draft.
    """

    text: str = ""
    level: str = ""
    reason: str = ""
    problem: str = ""
    status: int = 200


async def fact(visit: Visit) -> Response:
    """Show a fact."""
    view = await _fact(visit)
    return _missing(visit, "fact") if view is None else await _fact_page(visit, view, Draft())


async def trait(visit: Visit) -> Response:
    """Show a trait."""
    view = await _trait(visit)
    return _missing(visit, "trait") if view is None else await _trait_page(visit, view, Draft())


async def _fact_page(visit: Visit, view: FactView, draft: Draft) -> Response:
    here = memory_path(numbered_id(Kind.FACT, view.fact.fact))
    evidence, more = await _evidence(visit, view.fact.evidence, view.fact.text)
    if visit.is_part:
        return visit.page("evidence.html", evidence=evidence, more=more, here=here)
    periods = [
        Period(numbered_id(Kind.FACT, each.fact), each.text, each.valid_from, each.valid_until) for each in view.lineage
    ]
    return visit.page(
        "fact.html",
        draft.status,
        view=view,
        fact=view.fact,
        evidence=evidence,
        more=more,
        here=here,
        chart=period_chart(periods, visit.memories.now()),
        restorable=[each for each in view.superseded if each.is_corrected],
        may_hold_again=await _may_hold_again(visit, view),
        version=_version(view),
        draft=draft,
        text_max_chars=TEXT_MAX_CHARS,
    )


async def _may_hold_again(visit: Visit, view: FactView) -> bool:
    """Return whether the user marked the successor of a fact as wrong, so that the fact may be true again."""
    later = view.superseded_by
    if view.fact.is_corrected or later is None or not later.is_corrected:
        return False
    wrong = await _find(visit, numbered_id(Kind.FACT, later.fact))
    return isinstance(wrong, FactView) and wrong.superseded_by is None


async def _trait_page(visit: Visit, view: TraitView, draft: Draft) -> Response:
    trait, history = view.trait, view.history
    here = memory_path(trait_id(view.dimension))
    words = "" if trait is None else f"{trait.dimension} {trait.reason}"
    evidence, more = await _evidence(visit, () if trait is None else trait.evidence, words)
    if visit.is_part:
        return visit.page("evidence.html", evidence=evidence, more=more, here=here)
    periods = [Period(past.level, past.reason, past.held_from, past.held_until) for past in reversed(history)]
    if trait is not None:
        periods.append(Period(trait.level, trait.reason, trait.updated_at, None))
    is_set_by_user = trait is None or trait.learned_by == LEARNED_BY_USER
    return visit.page(
        "trait.html",
        draft.status,
        view=view,
        trait=trait,
        evidence=evidence,
        more=more,
        here=here,
        chart=period_chart(periods, visit.memories.now()),
        is_restorable=bool(history) and history[0].is_corrected and is_set_by_user,
        version=_version(view),
        draft=draft,
        levels=Level,
        reason_max_chars=REASON_MAX_CHARS,
    )


async def _evidence(visit: Visit, ids: Sequence[str], about: str) -> tuple[list[Page], int | None]:
    """Return some of the pages that support a fact or trait, and the index in ``ids`` of the next page.

    The index is None if there are no more pages. Long pages are shortened to the passages that match ``about`` best.
    """
    begin = number(visit.asked("from", "0"), "from")
    shown = ids[begin : begin + EVIDENCE_AT_ONCE]
    pages = [view.page for view in await visit.engine.look(shown) if isinstance(view, PageView)] if shown else []
    words = roots(about)
    more = begin + EVIDENCE_AT_ONCE
    return [_excerpt(page, words) for page in pages], more if more < len(ids) else None


def _excerpt(page: Page, words: frozenset[str]) -> Page:
    found = quote(page.user_input, page.agent_response, EXCERPT_TOKENS, words)
    return page if found is None else replace(page, user_input=found.user_input, agent_response=found.agent_response)


async def _fact(visit: Visit) -> FactView | None:
    view = await _find(visit, visit.request.path_params["id"])
    return view if isinstance(view, FactView) else None


async def _trait(visit: Visit) -> TraitView | None:
    view = await _find(visit, trait_id(visit.request.path_params["name"]))
    return view if isinstance(view, TraitView) else None


async def _find(visit: Visit, memory_id: str) -> MemoryView | None:
    try:
        (view,) = await visit.engine.look([memory_id])
    except ArgumentError:
        return None
    return view


def _missing(visit: Visit, noun: str) -> Response:
    problem = f"This {noun} does not exist. It may have been forgotten. Choose a view from the menu."
    if written := visit.given("text") or visit.given("reason"):
        problem += f" You wrote: “{written}”"
    return visit.page("problem.html", 404, title="Not found", problem=problem)


# Corrections --------------------------------------------------------------------------------------------------------


_NAMES = {"text": "The text ", "level": "The level ", "reason": "The reason ", "restore": "Restoring "}
_NOTES = {
    "text": "The fact is corrected. The earlier text stays in its history.",
    "level": "The trait is corrected. Its earlier state stays in its history.",
    "wrong": "Marked as wrong. It will not be learned again from existing pages.",
    "restore": "Restored.",
    "again": "The fact holds again, from its old date.",
}
_CHANGED = (
    "was changed meanwhile, in another tab or by an assistant. Your change was not made. Below is the current state."
)


async def change_fact(visit: Visit) -> Response:
    """Correct a fact if the person has confirmed the correction; otherwise, show what would change."""
    view = await _fact(visit)
    if view is None:
        return _missing(visit, "fact")
    draft = Draft(text=visit.given("text"))
    if not _is_shown(visit, view):
        return await _changed_fact(visit, view, draft)
    changes: dict[str, Change] = {
        "text": {"text": draft.text},
        "wrong": {"is_wrong": True},
        "restore": {"is_restored": True},
        "again": {"is_restored": True},
    }
    try:
        return await _change(visit, numbered_id(Kind.FACT, view.fact.fact), changes, view.fact.text)
    except ArgumentError as error:
        latest = await _fact(visit)
        if latest is None:
            return _missing(visit, "fact")
        if _version(latest) != _version(view):
            return await _changed_fact(visit, latest, draft)
        return await _fact_page(visit, latest, replace(draft, problem=_problem(error), status=400))


async def change_trait(visit: Visit) -> Response:
    """Correct a trait if the person has confirmed the correction; otherwise, show what would change."""
    view = await _trait(visit)
    if view is None:
        return _missing(visit, "trait")
    draft = Draft(level=visit.given("level"), reason=visit.given("reason"))
    if not _is_shown(visit, view):
        return await _trait_page(visit, view, replace(draft, problem=f"This trait {_CHANGED}", status=409))
    changes: dict[str, Change] = {
        "level": {"level": draft.level, "reason": draft.reason.strip() or None},
        "wrong": {"is_wrong": True},
        "restore": {"is_restored": True},
    }
    try:
        return await _change(visit, trait_id(view.dimension), changes, view.dimension)
    except ArgumentError as error:
        latest = await _trait(visit)
        if latest is None:
            return _missing(visit, "trait")
        return await _trait_page(visit, latest, replace(draft, problem=_problem(error), status=400))


async def _changed_fact(visit: Visit, view: FactView, draft: Draft) -> Response:
    """Show the current version of a fact that was changed while a person edited it. Keep the person's text."""
    latest = view
    if view.superseded_by is not None:
        newest = await _find(visit, numbered_id(Kind.FACT, view.superseded_by.fact))
        latest = newest if isinstance(newest, FactView) else view
    return await _fact_page(visit, latest, replace(draft, problem=f"This fact {_CHANGED}", status=409))


async def _change(visit: Visit, memory_id: str, changes: Mapping[str, Change], title: str) -> Response:
    """Make the correction that the person chose in the form, if the person has confirmed it.

    Otherwise, show what the correction would change. ``changes`` contains the arguments of each possible correction.
    """
    kind = visit.given("change")
    if kind not in changes:
        raise ArgumentError(argument="change", problem="this change is not possible here; use a button on the web page")
    is_confirmed = bool(visit.given("confirmed"))
    change = await visit.engine.correct(memory_id, **changes[kind], is_dry_run=not is_confirmed)
    if is_confirmed:
        path = memory_path(change.current_id or memory_id)
        return visit.go(path.removeprefix(PREFIX), _NOTES[kind])
    kept = [(name, visit.given(name)) for name in ("change", "shown", "text", "level", "reason")]
    return visit.page("correction.html", id=memory_id, kind=kind, change=change, kept=kept, title=title)


def _version(view: FactView | TraitView) -> str:
    """Return the state of a fact or trait as text, by which `_is_shown` recognises an outdated form of the web page."""
    if isinstance(view, FactView):
        return f"{view.state} {view.fact.text}"
    return "" if view.trait is None else f"{view.trait.level} {view.trait.reason}"


def _is_shown(visit: Visit, view: FactView | TraitView) -> bool:
    """Return whether a submitted form contains the current state of a fact or trait; see `_version`."""
    # Only words are compared, because browsers change the line ends in forms.
    return visit.given("shown").split() == _version(view).split()


def _problem(error: ArgumentError) -> str:
    text = f"{_NAMES.get(error.argument, '')}{error.problem}"
    return f"{text[0].upper()}{text[1:]}. Nothing was changed."


ADDRESSES = (
    get("/profile", profile),
    get("/facts/{id}", fact),
    post("/facts/{id}", change_fact),
    get("/traits/{name:path}", trait),
    post("/traits/{name:path}", change_trait),
)
