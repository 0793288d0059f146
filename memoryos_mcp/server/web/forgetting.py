"""The view Forget: a selection, the dry run that shows what would be forgotten, the confirmation, and the receipts."""

from datetime import date, timedelta

from starlette.responses import Response

from memoryos_mcp.consolidation.forgetting import CONFIRM_WITHIN, DryRun, Selection
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.forgotten import ForgetCounts
from memoryos_mcp.server.web.visits import Visit, get, number, post
from memoryos_mcp.text.amounts import amount

RECEIPTS_AT_ONCE = 20
PAGES_FOUND = 10
# Must be typed before everything is forgotten.
EVERYTHING = "everything"
_NOUNS = {"p": "page", "k": "fact", "t": "trait", "s": "topic"}


async def forget(visit: Visit) -> Response:
    """Show the forms to select what to forget, and the newest receipts."""
    return await _forms(visit)


async def plan(visit: Visit) -> Response:
    """Show what would be forgotten if the person confirmed the selection. Nothing is forgotten yet."""
    try:
        dry_run = await visit.engine.plan_forgetting(_selection(visit))
    except ArgumentError as error:
        return await _forms(visit, _problem(error), 400)
    return _dry_run(visit, dry_run)


async def confirm(visit: Visit) -> Response:
    """Forget what a dry run selected, and show the receipt."""
    return await _carry_out(visit)


async def confirm_everything(visit: Visit) -> Response:
    """Forget everything, and show the receipt. If the word `EVERYTHING` was not typed, show the dry run again."""
    if visit.given("word").strip().casefold() != EVERYTHING:
        dry_run = await visit.engine.plan_forgetting(Selection(everything=True))
        problem = f"Nothing was forgotten. To forget everything, type the word “{EVERYTHING}”."
        return _dry_run(visit, dry_run, problem, 400)
    return await _carry_out(visit)


async def receipt(visit: Visit) -> Response:
    """Show one receipt, and the backup copies that can still contain forgotten memories."""
    name = visit.request.path_params["receipt"]
    found = next((each for each in await visit.engine.forget_receipts() if each.receipt == name), None)
    if found is None:
        return visit.page(
            "problem.html",
            404,
            title="Not found",
            problem="This receipt does not exist. The view Forget lists all receipts.",
        )
    return visit.page(
        "receipt.html", receipt=found, words=_words(found.counts), copies=await visit.engine.kept_copies()
    )


async def remove_copies(visit: Visit) -> Response:
    """Remove the backup copies made by restores."""
    await visit.engine.remove_kept_copies()
    return visit.go("/forget", "The backup copies are deleted.")


async def _carry_out(visit: Visit) -> Response:
    try:
        done = await visit.engine.forget(visit.given("handle"))
    except ArgumentError:
        minutes = CONFIRM_WITHIN // timedelta(minutes=1)
        problem = (
            f"This selection does not exist, or it has expired, because it was made more than {minutes} minutes ago. "
            "Nothing was forgotten. Select again what to forget."
        )
        return await _forms(visit, problem, 404)
    return visit.go(f"/forget/receipts/{done.receipt}", "Forgotten.")


async def _forms(visit: Visit, problem: str = "", status: int = 200) -> Response:
    receipts = (await visit.engine.forget_receipts())[::-1]
    begin = number(visit.asked("receipts", "0"), "receipts")
    more = begin + RECEIPTS_AT_ONCE
    given = {name: visit.given(name) or visit.asked(name) for name in ("ids", "query", "from", "until")}
    return visit.page(
        "forget.html",
        status,
        problem=problem,
        given=given | {"ids": given["ids"] or "\n".join(visit.request.query_params.getlist("id"))},
        pages_found=visit.given("max_results") or PAGES_FOUND,
        receipts=[(each, _words(each.counts)) for each in receipts[begin:more]],
        older=more if more < len(receipts) else None,
        copies=await visit.engine.kept_copies(),
    )


def _dry_run(visit: Visit, dry_run: DryRun, problem: str = "", status: int = 200) -> Response:
    return visit.page(
        "forget_plan.html",
        status,
        dry_run=dry_run,
        words=_words(dry_run.counts),
        nouns=_NOUNS,
        problem=problem,
        everything=EVERYTHING,
        period=_period(visit),
    )


def _selection(visit: Visit) -> Selection:
    way = visit.given("way")
    if way == "everything":
        return Selection(everything=True)
    if way == "ids":
        return Selection(ids=[each for line in visit.given("ids").splitlines() for each in _ids(line)])
    begin, end = _days(visit)
    if begin is not None and end is not None and end < begin:
        raise ArgumentError(
            argument="before", problem="is earlier than the first day of the selection. Choose a later day"
        )
    now = visit.memories.now()
    # The last day is included. A time that is later than a day from now is not valid.
    before = None if end is None else f"{end + timedelta(days=1) if end <= now.date() else now + timedelta(days=1)}"
    found = visit.given("max_results") or f"{PAGES_FOUND}"
    return Selection(
        query=visit.given("query"),
        max_results=number(found, "max_results"),
        after=None if begin is None else begin.isoformat(),
        before=before,
    )


def _days(visit: Visit) -> tuple[date | None, date | None]:
    """Return the first and the last day of the selection. If there is only a first day, it is also the last."""
    begin, end = _day(visit, "from"), _day(visit, "until")
    return begin, begin if end is None else end


def _period(visit: Visit) -> str:
    """Return the selected days in words; empty if no day was selected."""
    if visit.given("way") != "pages":
        return ""
    begin, end = _days(visit)
    if begin == end:
        return f"only {begin}" if begin else ""
    return f"from {begin or 'the beginning'} until {end}, both included"


def _ids(line: str) -> list[str]:
    """Return the ids in a line, separated by spaces or commas. A line that begins with ``trait:`` is one id."""
    return [line.strip()] if line.strip().startswith("trait:") else line.replace(",", " ").split()


def _day(visit: Visit, name: str) -> date | None:
    text = visit.given(name).strip()
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        argument = {"from": "after", "until": "before"}[name]
        raise ArgumentError(argument=argument, problem="is not a valid day. Write it like 2026-05-08") from error


_LABELS = {
    "after": "The first day",
    "before": "The last day",
    "query": "The question",
    "max_results": "The number of pages",
    "ids": "The list of ids",
}


def _problem(error: ArgumentError) -> str:
    if error.argument == "ids" and not error.problem.startswith(("is ", "contains ")):
        text = error.problem[0].upper() + error.problem[1:]
    else:
        text = f"{_LABELS.get(error.argument, 'An id')} {error.problem}"
    # What follows says which arguments a tool takes.
    return f"{text.partition(';')[0]}. Nothing was forgotten."


def _words(counts: ForgetCounts) -> str:
    parts = [
        amount(n, noun) for n, noun in ((counts.pages, "page"), (counts.facts, "fact"), (counts.traits, "trait")) if n
    ]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]])) or "nothing"


ADDRESSES = (
    get("/forget", forget),
    post("/forget", plan),
    post("/forget/confirm", confirm),
    post("/forget/everything", confirm_everything),
    get("/forget/receipts/{receipt}", receipt),
    post("/forget/copies", remove_copies),
)
