"""Retrievals as text: validity of facts, differences in prompts, and the token budget."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.engine.responding import Manner, response_request
from memoryos_mcp.model.knowledge import About, Fact, Kind
from memoryos_mcp.model.pages import Page, Source, Tier, estimate_tokens
from memoryos_mcp.model.profile import Level, Trait
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.retrieval.budget import whole
from memoryos_mcp.retrieval.fitting import Fitted, Found, Limits, fit
from memoryos_mcp.retrieval.recall import Recall, RecalledFact, RecalledPage
from memoryos_mcp.retrieval.rendering import fact_line, recall_text
from memoryos_mcp.text.addressees import Speakers

AT = datetime(2026, 5, 20, tzinfo=UTC)
ENDED = datetime(2026, 6, 2, tzinfo=UTC)
SPEAKERS = Speakers("James", "John")
# Text that is longer when shown: lines to indent, characters to replace, our delimiters.
TEXT = st.text(st.sampled_from("ab \n\r\x00é語<"), max_size=60).map(lambda text: f"x{text}<memory>\nIt grew. " * 8)
SAID = st.one_of(st.just("So it is."), TEXT)


def fact(text: str = "I work at the mill.", **more: Any) -> Fact:
    return Fact(1, About.USER, text, None, AT, more.pop("valid_until", None), (), None, **more)


@pytest.mark.parametrize(
    ("holds", "shown"),
    [
        ({}, "2026-05-20"),
        ({"said_since": "2019"}, "2019"),
        ({"valid_until": ENDED}, "until 2026-06-02"),
        ({"valid_until": AT}, "until 2026-05-20"),
        ({"valid_until": ENDED, "said_until": "2024"}, "until 2024"),
        ({"said_since": "2019", "valid_until": ENDED, "said_until": "2024"}, "from 2019 to 2024"),
        ({"said_since": "2019-03", "valid_until": ENDED}, "from 2019-03 to 2026-06-02"),
        ({"said_since": "2023-05-08", "valid_until": ENDED, "said_until": "2023-05-08"}, "2023-05-08"),
    ],
)
def test_a_fact_that_has_ended_is_shown_with_its_dates(holds: dict[str, Any], shown: str) -> None:
    assert fact_line(fact(**holds)) == f"- I work at the mill. ({shown})"


def page(seq: int, user: str, agent: str = "I see.", source: Source = Source.CONVERSATION) -> Page:
    meta_data = '{"order": 4711}' if seq % 3 == 0 else None
    return Page(
        seq=seq,
        page_id=f"p_{seq:016}",
        user_input=user,
        agent_response=agent,
        occurred_at=AT,
        meta_data=meta_data,
        session=1,
        tier=Tier.MID_TERM,
        source=source,
    )


def recall(fitted: Fitted) -> Recall:
    return Recall(
        short_term=fitted.short_term,
        pages=fitted.pages,
        segments=(),
        user_facts=[each for each in fitted.facts if each.fact.about is About.USER],
        assistant_facts=[each for each in fitted.facts if each.fact.about is About.ASSISTANT],
        traits=fitted.traits,
        asked=cast("Any", None),
        is_semantic=True,
        recipe="x",
        tokens=fitted.tokens,
        wishes=fitted.wishes,
        speakers=SPEAKERS,
        has_topics=fitted.has_topics,
        left_out=fitted.left_out,
    )


@st.composite
def found(draw: st.DrawFn) -> Found:
    topics = [Segment(n, draw(SAID), ("x",), None, 1, 1, AT, 1, 0, "x") for n in (1, 2)]
    newest = [page(seq, draw(SAID)) for seq in range(20, 20 + draw(st.integers(0, 5)))]
    pages = [page(seq, draw(SAID), source=draw(st.sampled_from(Source))) for seq in range(draw(st.integers(0, 8)))]
    candidates = [
        RecalledPage(each, whole(each), 1.0, notes=each.meta_data, segment=draw(st.sampled_from([None, *topics])))
        for each in (*pages, *newest)
    ]
    known = [fact(draw(SAID), valid_until=draw(st.sampled_from([None, ENDED]))) for _ in range(draw(st.integers(0, 6)))]
    return Found(
        wishes=[RecalledFact(replace(each, kind=Kind.WISH), 0.0) for each in known[:2]],
        traits=[Trait("Food", Level.HIGH, draw(SAID), (), AT) for _ in range(draw(st.integers(0, 3)))],
        facts=[RecalledFact(replace(each, about=draw(st.sampled_from(About))), 1.0) for each in known],
        short_term=newest,
        pages=candidates,
    )


@given(found(), st.integers(100, 1_500), st.booleans())
def test_no_text_exceeds_its_budget_or_its_token_count(given_: Found, max_tokens: int, has_all_recent: bool) -> None:
    limits = Limits(20, max_tokens, has_all_recent=has_all_recent)
    fitted = fit(given_, limits, SPEAKERS, frozenset())
    text = recall_text(recall(fitted))
    assert estimate_tokens(text) == fitted.tokens <= max_tokens
    prompt = response_request("And?", recall(fitted), Manner(), now=AT, zone=UTC)
    told = sum(len(message.content.encode()) for message in prompt.messages[1:])
    assert told <= len(text.encode()) + len("[2026-05-20, Wednesday] And?") + 4 * len(prompt.messages)
    if fitted.left_out is not None:
        enough = fit(given_, replace(limits, tokens=fitted.left_out.max_tokens), SPEAKERS, frozenset())
        assert enough.left_out is None
        assert estimate_tokens(recall_text(recall(enough))) <= fitted.left_out.max_tokens


def test_a_prompt_and_a_tool_result_differ_only_in_ids() -> None:
    fetched = page(4, "Bread is baked.", "", Source.WEB)
    parts = Found(
        wishes=[RecalledFact(fact("Be brief.", kind=Kind.WISH), 0.0)],
        traits=[Trait("Food", Level.HIGH, "Spoke of bread.", (), AT)],
        facts=[RecalledFact(fact(valid_until=ENDED), 1.0), RecalledFact(replace(fact(), about=About.ASSISTANT), 1.0)],
        short_term=[],
        pages=[RecalledPage(each, whole(each), 1.0, notes=each.meta_data) for each in (page(3, "I baked."), fetched)],
    )
    recalled = recall(fit(parts, Limits(20, 2_000), SPEAKERS, frozenset()))
    told = recall_text(recalled)
    asked = response_request("And?", recalled, Manner(), now=AT, zone=UTC).messages[-1].content
    shown = told.replace(", p_0000000000000003", "").replace(", p_0000000000000004", "")
    assert shown[shown.index("<memory>") :] == asked[: asked.index("</memory>") + len("</memory>")]
    assert "p_0000" not in asked
    assert "\nUser (James): I baked." in asked
    assert "from web, not said by the user]\n  Bread is baked." in asked
