import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.statements import LIFE, life_pages
from memoryos_mcp.llm.analysis import Analyst, Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive import ExtractiveAnalyst, learn, organise
from memoryos_mcp.llm.extractive.days import with_days
from memoryos_mcp.llm.extractive.digests import make_digest
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, Fact, KnowledgeChange
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.model.profile import Level, Trait

START = datetime(2023, 5, 8, 12, tzinfo=UTC)
calm = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def page(seq: int, user: str, assistant: str = "", *, day: int | None = None, session: int = 1) -> Page:
    when = START + timedelta(days=seq if day is None else day)
    return Page(
        seq=seq,
        page_id=f"p_{seq}",
        user_input=user,
        agent_response=assistant,
        occurred_at=when,
        session=session,
        tier=Tier.BACKLOG,
    )


def pages(*texts: str) -> list[Page]:
    return [page(seq, text) for seq, text in enumerate(texts, start=1)]


def fact(
    number: int, text: str, slot: str | None = None, *, day: int = 0, evidence: tuple[str, ...] = ("p_900",)
) -> Fact:
    return Fact(number, About.USER, text, slot, START + timedelta(days=day), None, evidence, None)


def knowledge(said: Sequence[Page], facts: Sequence[Fact] = ()) -> tuple[KnowledgeChange, ...]:
    return learn(said, Surroundings(facts=facts)).knowledge


def texts(said: Sequence[Page], facts: Sequence[Fact] = ()) -> list[str]:
    return [change.text for change in knowledge(said, facts) if isinstance(change, AddFact)]


def squeezed(text: str) -> str:
    return " ".join(text.split())


dialogue = st.lists(
    st.tuples(
        st.one_of(
            st.text(max_size=200),
            st.sampled_from(["I live in Oslo.", "Wow!", "I love my two cats. 我住在北京。", "```x```"]),
        ),
        st.one_of(
            st.text(max_size=200), st.sampled_from(["What is it like?", "I am an AI assistant.", "Kilns are hot."])
        ),
        st.integers(1, 2),
        st.one_of(st.none(), st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4)),
    ),
    min_size=1,
    max_size=12,
)


def views(drawn: list[tuple[str, str, int, list[float] | None]]) -> list[Page]:
    made = []
    for seq, (user, assistant, session, numbers) in enumerate(drawn, start=1):
        vector = None
        if numbers is not None:
            vector = np.asarray(numbers, dtype=np.float32)
            length = float(np.linalg.norm(vector))
            vector = vector / np.float32(length) if length > 1e-3 else None
        made.append(replace(page(seq, user, assistant, session=session), vector=vector))
    return made


def continued(organised: Organised) -> set[int]:
    """Return the pages that carry on the one before them."""
    later = {seq for run in organised.runs for seq in run.pages[1:]}
    return later | ({organised.runs[0].pages[0]} if organised.is_continuing else set())


# Topics and chains


@calm
@given(dialogue)
def test_every_page_is_in_exactly_one_topic_and_one_run(drawn: list[tuple[str, str, int, list[float] | None]]) -> None:
    batch = views(drawn)
    organised = organise(batch, None)
    assert sorted(seq for topic in organised.topics for seq in topic.pages) == [view.seq for view in batch]
    assert [seq for run in organised.runs for seq in run.pages] == [view.seq for view in batch]
    assert continued(organised) <= {view.seq for view in batch[1:]}
    assert organise(batch, None) == organised


def test_pages_on_two_subjects_make_two_topics() -> None:
    pottery = "My pottery class fired the bowls in the kiln, and the glaze on the pottery came out blue."
    tax = "The tax office wants the tax return and the income statement before the tax deadline."
    batch = [page(seq, text) for seq, text in enumerate((pottery, tax, pottery, tax), start=1)]
    topics = organise(batch, None).topics
    assert {topic.pages for topic in topics} == {(1, 3), (2, 4)}
    assert "pottery" in topics[0].digest.keywords
    assert "tax" in topics[1].digest.keywords


def test_vectors_group_pages_that_share_no_word() -> None:
    near, far = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    batch = [
        replace(page(1, "The kiln cracked."), vector=near),
        replace(page(2, "Taxes again."), vector=far),
        replace(page(3, "Glaze everywhere."), vector=near),
    ]
    assert {topic.pages for topic in organise(batch, None).topics} == {(1, 3), (2,)}


def test_a_short_reply_continues_the_page_before_it_and_stays_in_its_topic() -> None:
    batch = [page(1, "I signed up for pottery."), page(2, "That was fun!")]
    organised = organise(batch, None)
    assert continued(organised) == {2}
    assert [topic.pages for topic in organised.topics] == [(1, 2)]


def test_the_first_page_can_continue_the_page_before_the_batch() -> None:
    before = page(1, "Tell me about kilns.", "A kiln is an oven.")
    assert not organise([page(2, "Plan my tax return.")], before).is_continuing
    assert organise([page(2, "It sounds hot.")], before).is_continuing


def test_a_run_ends_where_a_page_does_not_continue_the_one_before_it() -> None:
    said = pages("I signed up for pottery.", "That was fun!", "Plan my tax return.", "Thanks!")
    organised = organise(said, None)
    assert [run.pages for run in organised.runs] == [(1, 2), (3, 4)]
    assert [run.summary for run in organised.runs] == [make_digest(said[:2]).summary, make_digest(said[2:]).summary]


def test_no_page_continues_one_of_another_session() -> None:
    batch = [page(1, "The kiln is hot.", session=1), page(2, "It is hot.", session=2)]
    assert continued(organise(batch, None)) == set()


# Digests


@calm
@given(dialogue)
def test_a_summary_quotes_only_what_was_said(drawn: list[tuple[str, str, int, list[float] | None]]) -> None:
    said = views(drawn)
    digest = make_digest(said)
    spoken = [squeezed(one.text) for one in said]
    label = ", ".join(digest.keywords[:3])
    quoted = digest.summary.removeprefix(f"{label}: ")
    assert quoted.startswith('"')
    assert quoted.endswith('"')
    assert _is_made_of(quoted, " ".join(spoken)), (quoted, spoken)
    assert len(set(digest.keywords)) == len(digest.keywords) <= 8
    assert make_digest(said) == digest


def _is_made_of(quoted: str, spoken: str) -> bool:
    """Whether the text is a row of quotes, each verbatim, however many quote marks stand inside them."""
    if not quoted:
        return True
    closings = [end for end in range(1, len(quoted)) if quoted[end] == '"' and quoted[end + 1 : end + 3] in ("", ' "')]
    return any(quoted[1:end].removesuffix("…") in spoken and _is_made_of(quoted[end + 2 :], spoken) for end in closings)


def test_keywords_merge_inflections_and_leave_out_chat_filler() -> None:
    said = pages(
        "Wow, thanks! I love painting. My paintings hang in the hallway.",
        "Great! 2023 was the year of paintings. See https://example.org/x_y and 0xdeadbeef99.",
    )
    keywords = make_digest(said).keywords
    assert keywords[0] in {"painting", "paintings"}
    assert not {"wow", "thanks", "great", "2023", "love", "https", "year"} & set(keywords)
    assert len([word for word in keywords if word.startswith("paint")]) == 1


def test_chinese_and_japanese_give_keywords_and_whole_sentences() -> None:
    digest = make_digest(pages("我最近在学陶艺。陶艺课非常有意思！", "陶艺工作室在公园旁边。"))
    assert "陶艺" in digest.keywords
    assert "我最近在学陶艺。" in digest.summary or "陶艺工作室在公园旁边。" in digest.summary


def test_statements_are_preferred_to_questions_and_greetings() -> None:
    digest = make_digest([page(1, "Hey Mel! Is the pottery class near the kiln? I made a pottery bowl in the kiln.")])
    assert '"I made a pottery bowl in the kiln."' in digest.summary


def test_a_page_of_signs_alone_still_has_a_summary() -> None:
    assert make_digest([page(1, "🎉🎉")]).summary == '"🎉🎉"'


def test_a_long_sentence_is_cut_at_a_word_and_marked() -> None:
    sentence = "The kiln " + "glows and " * 60 + "cools."
    summary = make_digest([page(1, sentence)]).summary
    assert summary.endswith('…"')
    assert summary.split('"')[1].removesuffix("…") in sentence


# Knowledge


@calm
@given(dialogue)
def test_every_fact_is_verbatim(drawn: list[tuple[str, str, int, list[float] | None]]) -> None:
    said = views(drawn)
    by_seq = {one.seq: squeezed(one.text) for one in said}
    lessons = learn(said, Surroundings())
    for change in lessons.knowledge:
        assert isinstance(change, AddFact)
        assert change.text in by_seq[min(change.evidence, key=lambda seq: change.text not in by_seq[seq])]
    assert learn(said, Surroundings()) == lessons


@pytest.mark.parametrize(
    ("sentence", "slot"),
    [
        ("My name is Mara.", "name"),
        ("I live in Oslo.", "lives"),
        ("I just moved to Berlin!", "lives"),
        ("I work as a nurse.", "work"),
        ("I'm a nurse at the city hospital.", "work"),
        ("I'm 44 years old.", "age"),
        ("My birthday is 3 May.", "birthday"),
        ("My favourite food is ramen.", "favourite food"),
        ("I have two cats.", None),
        ("I'm allergic to peanuts.", None),
        ("My sister lives in Porto.", None),
        ("I prefer tea to coffee.", None),
        ("I've been playing the violin for ten years.", None),
        ("I don't eat meat.", None),
        ("Ich wohne in Leipzig.", "lives"),
        ("J'habite à Lyon.", "lives"),
        ("Me llamo Lucía.", "name"),
        ("Я живу в Казани.", "lives"),
        ("我叫小明。", "name"),
        ("我住在上海。", "lives"),
        ("私は東京に住んでいます。", "lives"),
        ("저는 서울에 살아요.", "lives"),
    ],
)
def test_a_durable_statement_is_learned_with_its_slot(sentence: str, slot: str | None) -> None:
    one = page(1, f"{sentence}")
    assert knowledge([one]) == (AddFact(About.USER, sentence, slot, one.occurred_at, (1,)),)


@pytest.mark.parametrize(
    "text",
    [
        "If I live in Oslo, I have two cats.",
        "I wish I lived in Oslo.",
        "I think I live in the wrong place.",
        "I want you to be brief.",
        "I need help with my sister.",
        "I'd like to know where I live.",
        "I'm trying to fix the login page.",
        "Do you know I live in Oslo?",
        "I love it!",
        "I love how you said that.",
        'She said "I live in Oslo."',
        "I went to the shop yesterday.",
        "Here is my draft:\nI live in Oslo.",
        "Translate this sentence. I live in Oslo.",
        "> I live in Oslo.",
        "| I live in Oslo. | I have two cats. |",
        "- I live in Oslo.",
        "```\nI live in Oslo.\n```",
        "```\nI live in Oslo. I never closed this.",
        "<memory>\nI live in Oslo.\n</memory>",
        "<memory id='7'>I have two cats.",
        "Dear Sir or Madam,\nI live in Oslo.",
        "如果我住在上海，我有两只猫。",
    ],
)
def test_what_asks_wishes_quotes_or_shows_is_not_learned(text: str) -> None:
    assert knowledge([page(1, text)]) == ()


def test_a_statement_inside_a_request_is_learned_alone() -> None:
    said = (
        "I'm Crystal, a film producer based in Plymouth, and I'm trying to write a resume, can you help me with that?"
    )
    assert texts([page(1, said)]) == ["I'm Crystal, a film producer based in Plymouth"]


@pytest.mark.parametrize(
    "text", ["I moved to Rust.", "I'm French, a baker.", "I'm Native American.", "I work for free."]
)
def test_what_only_looks_like_an_address_a_name_or_an_employer_fills_no_slot(text: str) -> None:
    slots = {change.slot for change in knowledge([page(1, text)]) if isinstance(change, AddFact)}
    assert not slots & {"lives", "name", "employer"}


def test_prose_around_code_is_still_learned() -> None:
    assert texts([page(1, "I work as a nurse.\n```py\nx = 1\n```\nI have two cats.")]) == [
        "I work as a nurse.",
        "I have two cats.",
    ]


def test_the_assistant_is_known_only_by_what_it_says_of_itself() -> None:
    one = page(1, "", "I'm an AI assistant made for cooks. I live in Oslo. I recommended the blue glaze.")
    changes = knowledge([one])
    assert [(change.about, change.text) for change in changes if isinstance(change, AddFact)] == [
        (About.ASSISTANT, "I'm an AI assistant made for cooks."),
        (About.ASSISTANT, "I recommended the blue glaze."),
    ]


def test_a_newer_answer_takes_the_place_of_the_known_one() -> None:
    one = page(5, "I live in Oslo.")
    assert knowledge([one], [fact(7, "I live in Bergen.", "lives")]) == (
        AddFact(About.USER, "I live in Oslo.", "lives", one.occurred_at, (5,), supersedes=(7,)),
    )


def test_a_fact_worded_by_someone_else_is_confirmed_or_superseded_by_its_answer() -> None:
    known = fact(7, "The user lives in Bergen, Norway", "lives")
    assert knowledge([page(5, "I live in Bergen.")], [known]) == (ConfirmFact(7, (5,)),)
    assert [
        change.supersedes for change in knowledge([page(5, "I live in Oslo.")], [known]) if isinstance(change, AddFact)
    ] == [(7,)]


def test_an_older_answer_that_arrives_later_changes_nothing() -> None:
    known = fact(7, "I live in Bergen.", "lives", day=30)
    assert knowledge([page(5, "I live in Oslo.", day=2)], [known]) == ()


def test_of_two_answers_in_one_call_the_later_said_holds_whatever_the_order_of_arrival() -> None:
    later, earlier = page(1, "I live in Oslo.", day=9), page(2, "I live in Bergen.", day=3)
    assert knowledge([later, earlier]) == (
        AddFact(About.USER, "I live in Bergen.", "lives", earlier.occurred_at, (2,)),
        AddFact(About.USER, "I live in Oslo.", "lives", later.occurred_at, (1,), ends=("I live in Bergen.",)),
    )


def test_who_returns_to_an_earlier_answer_has_been_elsewhere_meanwhile() -> None:
    known = fact(7, "I live in Bergen.", "lives")
    away, back = knowledge(pages("I live in Oslo.", "I live in Bergen."), [known])
    assert isinstance(away, AddFact)
    assert isinstance(back, AddFact)
    assert (away.text, away.supersedes, back.text, back.ends) == (
        "I live in Oslo.",
        (7,),
        "I live in Bergen.",
        ("I live in Oslo.",),
    )


def test_what_is_said_again_confirms_and_the_same_page_confirms_once() -> None:
    known = fact(7, "I have two cats.", evidence=("p_1",))
    assert knowledge(pages("I have two cats!", "I have TWO cats"), [known]) == (ConfirmFact(7, (2,)),)
    assert knowledge(pages("I have two cats!"), [known]) == ()


def test_the_same_statement_in_one_call_is_one_fact_with_both_pages() -> None:
    said = pages("I have two cats.", "Well, I have two cats!")
    assert knowledge(said) == (AddFact(About.USER, "I have two cats.", None, said[0].occurred_at, (1, 2)),)


def test_a_denial_or_another_number_is_not_the_same_statement() -> None:
    assert texts(
        pages("I never eat meat.", "I have two cats."), [fact(1, "I often eat meat."), fact(2, "I have three cats.")]
    ) == [
        "I never eat meat.",
        "I have two cats.",
    ]


# Traits


def test_two_pages_make_an_interest_that_cites_them() -> None:
    (change,) = learn(pages("I love playing guitar on weekends.", "The concert was loud."), Surroundings()).traits
    assert (change.dimension, change.level, change.evidence) == ("Music", Level.LOW, (1, 2))
    assert change.reason == (
        "Spoke of concert and guitar in 2 pages from 2023-05-09 to 2023-05-10, "
        'as in "I love playing guitar on weekends."'
    )


def test_one_page_makes_no_interest() -> None:
    assert learn(pages("I love playing guitar on weekends."), Surroundings()).traits == ()


def test_one_page_adds_to_an_interest_and_its_count_goes_on() -> None:
    first = learn(pages("I love playing guitar on weekends.", "The concert was loud."), Surroundings()).traits[0]
    trait = Trait(first.dimension, first.level, first.reason, ("p_1", "p_2"), START)
    (change,) = learn([page(9, "My piano is out of tune.")], Surroundings(traits=(trait,))).traits
    assert (change.level, change.evidence) == (Level.MEDIUM, (9,))
    assert change.reason == (
        "Spoke of concert, guitar and piano in 3 pages from 2023-05-09 to 2023-05-17, "
        'as in "I love playing guitar on weekends."'
    )


def test_the_same_pages_again_change_no_interest() -> None:
    trait = Trait("Music", Level.LOW, "Spoke of it.", ("p_1", "p_2"), START)
    assert learn(pages("I love my guitar.", "The concert was loud."), Surroundings(traits=(trait,))).traits == ()


def test_a_reason_that_somebody_else_wrote_is_kept_and_no_level_falls() -> None:
    trait = Trait("Music", Level.HIGH, "A violinist by trade.", ("p_90",), START)
    (change,) = learn(pages("The concert was loud."), Surroundings(traits=(trait,))).traits
    assert (change.level, change.reason, change.evidence) == (Level.HIGH, "A violinist by trade.", (1,))


def test_interests_of_the_assistant_and_of_pasted_code_do_not_count() -> None:
    said = [page(1, "ok", "guitar concert"), page(2, "```\nguitar concert\n```", "piano")]
    assert learn(said, Surroundings()).traits == ()


def test_manner_needs_five_messages_and_goes_on_from_its_own_words() -> None:
    lines = ["So nice!", "Wow!", "Quiet day.", "Fine by me.", "Rain."]
    assert learn(pages(*lines[:4]), Surroundings()).traits == ()
    found = {change.dimension: change for change in learn(pages(*lines), Surroundings()).traits}
    assert found["Emotional Expression"].reason == "Exclamation marks or emoji in 40% of 5 messages."
    assert found["Emotional Expression"].level is Level.MEDIUM
    assert "Sense of Humor" not in found
    trait = Trait("Emotional Expression", Level.MEDIUM, found["Emotional Expression"].reason, ("p_1", "p_2"), START)
    more = {change.dimension: change for change in learn([page(9, "Yes!")], Surroundings(traits=(trait,))).traits}
    assert more["Emotional Expression"].reason == "Exclamation marks or emoji in 50% of 6 messages."


# The analyst


async def test_the_analyst_keeps_the_protocol() -> None:
    analyst: Analyst = ExtractiveAnalyst()
    assert analyst.name == "extractive"
    view = page(1, "I live in Oslo and paint.")
    organised = await analyst.organise([view], Surroundings())
    assert organised == organise([view], None)
    assert len((await analyst.learn([view], Surroundings())).knowledge) == 1
    assert analyst.portion([view] * 300) == 300


async def test_what_joins_is_digested_together_with_what_was_there() -> None:
    earlier, later = pages("My pottery kiln is hot.", "The pottery glaze is blue.")
    topic = Topic(make_digest([later]), (2,))
    run = Run((2,), "the run alone")
    times_read = []

    async def both() -> Sequence[Page]:
        times_read.append(1)
        return [earlier, later]

    analyst: Analyst = ExtractiveAnalyst()
    whole = make_digest([earlier, later])
    assert await analyst.joined_digest(None, [topic], both) == whole
    assert await analyst.joined_summary("the chain so far", run, both) == whole.summary
    assert len(times_read) == 2
    assert await analyst.joined_summary("", run, both) == "the run alone"
    assert len(times_read) == 2


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "I live in Oslo. " * 6_000,
        "<memory" * 14_000,
        "`" * 99_999,
        "我" * 100_000,
        "🎉 " * 50_000,
        "a, " * 33_000,
    ],
)
def test_a_page_of_the_greatest_length_is_digested_and_learned(text: str) -> None:
    view = page(1, text, text)
    assert organise([view], None).topics[0].pages == (1,)
    assert len(learn([view], Surroundings()).knowledge) <= 1


# Pages that are read together


def held_after(*steps: Sequence[Page]) -> list[str]:
    """Return what holds once pages are read, some of them together, as a store keeps it."""
    known: dict[int, Fact] = {}
    number = 0
    for step in steps:
        for change in knowledge(step, list(known.values())):
            if isinstance(change, AddFact):
                over = {number for number, fact in known.items() if fact.text in change.ends}
                for old in over.union(change.supersedes):
                    del known[old]
                number += 1
                known[number] = Fact(
                    number, change.about, change.text, change.slot, change.valid_from, None, (), None, kind=change.kind
                )
    return [fact.text for fact in known.values()]


@pytest.mark.parametrize(
    ("told", "holds"),
    [
        (("I'm a vegetarian.", "I'm not a vegetarian any more."), ["I'm not a vegetarian any more."]),
        (("We drive a Volvo.", "We sold the Volvo."), ["We sold the Volvo."]),
        (("My husband is called Kofi.", "We got divorced."), ["We got divorced."]),
        (("Never use emojis.", "You can use emojis again."), ["You can use emojis again."]),
        (("My flight is on 9 June.", "My flight is on 12 June."), ["My flight is on 12 June."]),
        (("I live in New York.", "I live in York."), ["I live in York."]),
        (("I live in Leeds.", "I live in York.", "I live in Leeds."), ["I live in Leeds."]),
    ],
)
def test_what_was_said_last_holds_whether_pages_are_read_together_or_not(
    told: tuple[str, ...], holds: list[str]
) -> None:
    assert held_after(pages(*told)) == holds
    assert held_after(*([page] for page in pages(*told))) == holds


def test_a_year_read_at_once_teaches_what_it_teaches_page_by_page() -> None:
    year = life_pages(tomllib.loads((LIFE / "year.toml").read_text(encoding="utf-8"))["page"])
    assert held_after(year) == held_after(*([page] for page in year))


@given(
    st.lists(st.sampled_from(["next", "last", "Frıday", "laſt", "week", "ſix", "ago", "in", "3", "years", "today"])),
    st.datetimes(timezones=st.just(UTC)),
)
def test_dates_are_only_ever_added_to_a_text(told: list[str], said_at: datetime) -> None:
    text = " ".join(told)
    assert re.sub(r" \[[^\]]+\]", "", with_days(text, said_at)) == text


@pytest.mark.parametrize("text", ["next Frıday", "laſt week", "ſix weeks ago", "in fıve days"])
def test_letters_that_only_look_like_those_of_a_day_are_no_day(text: str) -> None:
    assert with_days(text, START) == text
