"""Time spans in queries in many languages, and the nearness of pages to them."""

import subprocess
import sys
from datetime import date, datetime

import numpy as np
import pytest

from memoryos_mcp.retrieval.query_time import Unit, nearness, time_spans

NOW = datetime(2023, 10, 20, 12)  # noqa: DTZ001 - the user's own
WEEK = ("2023-10-09", 7)
YESTERDAY = ("2023-10-19", 1)


def days(*dates: str) -> np.ndarray:
    epoch = date(1970, 1, 1)
    return np.array([(date.fromisoformat(one) - epoch).days for one in dates], dtype=np.int64)


def test_the_parser_is_imported_only_when_it_is_loaded() -> None:
    program = (
        "import sys; from memoryos_mcp.retrieval import query_time; print('dateparser.date' in sys.modules); "
        "query_time.load(); print('dateparser.date' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8")
    assert found.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    ("query", "begin", "length"),
    [
        ("What did Ann do last week?", *WEEK),
        ("what did I say yesterday", *YESTERDAY),
        ("Who came on 8 May, 2023?", "2023-05-08", 1),
        ("Who came on May 8th 2023", "2023-05-08", 1),
        ("What was on 2023-05-08?", "2023-05-08", 1),
        ("Where was I in early August 2023?", "2023-08-01", 31),
        ("What did I do three days ago?", "2023-10-17", 1),
        ("a couple of weeks ago", "2023-10-02", 7),
        ("last Friday", "2023-10-13", 1),
        ("Where did I live in 2022?", "2022-01-01", 365),
        ("Was habe ich letzte Woche gesagt?", *WEEK),
        ("Was war am 8. Mai 2023?", "2023-05-08", 1),
        ("Qu'ai-je dit la semaine dernière ?", *WEEK),
        ("Où étais-je en mai 2023 ?", "2023-05-01", 31),
        ("¿Qué hice hace 3 días?", "2023-10-17", 1),
        ("Cosa ho detto ieri?", *YESTERDAY),
        ("O que eu disse ontem?", *YESTERDAY),
        ("Wat zei ik gisteren?", *YESTERDAY),
        ("Что я делал на прошлой неделе?", *WEEK),
        ("我上周说了什么？", *WEEK),
        ("2023年5月8日我做了什么", "2023-05-08", 1),
        ("先週何をした", *WEEK),
        ("지난주에 뭐 했어?", *WEEK),
        ("ماذا فعلت أمس", *YESTERDAY),
    ],
)
def test_a_time_span_is_found(query: str, begin: str, length: int) -> None:
    (span,) = time_spans(query, NOW)
    assert (f"{span.begin:%Y-%m-%d}", span.days) == (begin, length)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "I may march on",
        "may I ask who she is",
        "an august company",
        "What did I pay, 2023.50?",
        "call 2019-2020",
        "9999-99-99",
        "the sun and the sea",
        "set 5 alarms",
        "1/2 cup of sugar",
        'NEAR("x" AND *)',
        "x" * 20_000,
        "🙂" * 500,
    ],
)
def test_text_without_a_time_has_no_span(query: str) -> None:
    assert time_spans(query, NOW) == []


def test_a_nonexistent_date_is_not_an_error() -> None:
    assert all(span.unit is not Unit.DAY for span in time_spans("31 February 2023, 2023-13-45", NOW))


def test_at_most_four_distinct_spans_are_returned() -> None:
    assert len(time_spans("May 2021, May 2021, June 2021, July 2021, August 2021, September 2021", NOW)) == 4


def test_a_month_without_a_year_means_every_year() -> None:
    near = nearness(time_spans("What happened in May?", NOW), days("2021-05-31", "2022-05-01", "2023-04-30"))
    assert near.tolist() == [1.0, 1.0, 0.0]


def test_nearness_falls_from_the_day_to_the_rest_of_its_month() -> None:
    spans = time_spans("What happened on 8 May 2023?", NOW)
    said = days("2023-05-08", "2023-05-10", "2023-05-30", "2023-06-08", "2022-05-08")
    assert nearness(spans, said).tolist() == [2.0, 1.0, 0.5, 0.0, 0.0]


def test_without_a_span_nearness_is_zero() -> None:
    assert nearness([], days("2023-05-08")).tolist() == [0.0]


def test_a_leap_day_recurs_only_in_leap_years() -> None:
    near = nearness(time_spans("on February 29", datetime(2024, 3, 1)), days("2023-02-28", "2020-02-29"))  # noqa: DTZ001
    assert near[1] == 2.0
