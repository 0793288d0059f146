"""Turns are validated before anything is stored."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import NewTurn, Turn, checked, estimate_tokens, parse_timestamp, storable

NOW = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


def turn(max_page_chars: int = 1000, zone: tzinfo | None = UTC, **given: Any) -> Turn:
    new = NewTurn(**{"user_input": "hello", "agent_response": "hi", **given})
    return checked(new, max_page_chars=max_page_chars, zone=zone, now=NOW)


def test_a_turn_without_a_time_gets_the_current_time() -> None:
    assert turn().occurred_at == NOW


def test_a_time_without_a_zone_is_in_the_users_zone() -> None:
    lisbon = ZoneInfo("Europe/Lisbon")
    assert parse_timestamp("2026-05-01 10:00:00", zone=lisbon, now=NOW) == datetime(2026, 5, 1, 9, 0, tzinfo=UTC)


def test_a_time_with_a_zone_keeps_its_zone() -> None:
    moment = parse_timestamp("2026-05-01T10:00:00+05:30", zone=UTC, now=NOW)
    assert moment.utcoffset() == timedelta(hours=5, minutes=30)
    assert moment.isoformat() == "2026-05-01T10:00:00+05:30"


def test_a_datetime_is_used_unchanged() -> None:
    moment = datetime(2026, 5, 1, tzinfo=timezone(timedelta(hours=2)))
    assert parse_timestamp(moment, zone=UTC, now=NOW) is moment


@pytest.mark.parametrize("bad", ["yesterday", "2026-13-01", "2026-05-32T00:00", "12345678901234567890", "NaN", "9999"])
def test_an_invalid_time_is_refused_with_an_example(bad: str) -> None:
    with pytest.raises(ArgumentError, match=r"timestamp: .*(is not a valid time; write it like|in the future)"):
        turn(timestamp=bad)


@pytest.mark.parametrize("bad", ["2031-01-01", "9999-12-31T23:59:59-23:59", "2026-05-10T00:00:00"])
def test_a_time_far_in_the_future_is_refused(bad: str) -> None:
    with pytest.raises(ArgumentError, match=r"timestamp: is (in the future|outside)"):
        turn(timestamp=bad)


@pytest.mark.parametrize("bad", ["0001-01-01T00:00:00+14:00", "1850-01-01"])
def test_a_time_before_1900_is_refused(bad: str) -> None:
    with pytest.raises(ArgumentError, match=r"timestamp: is (before|outside)"):
        turn(timestamp=bad)


def test_a_time_slightly_in_the_future_is_accepted() -> None:
    assert turn(timestamp="2026-05-08T18:00:00Z").occurred_at > NOW


@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
def test_a_turn_needs_at_least_one_side(blank: str) -> None:
    with pytest.raises(ArgumentError, match="user_input: is empty, and so is 'agent_response'"):
        turn(user_input=blank, agent_response=blank)


def test_one_side_may_be_empty() -> None:
    assert turn(user_input="").agent_response == "hi"
    assert turn(agent_response="").user_input == "hello"


def test_the_error_for_too_long_a_page_names_only_the_limit() -> None:
    with pytest.raises(
        ArgumentError, match=r"agent_response: the page has 1,505 characters, more than the limit of 1,000"
    ) as e:
        turn(agent_response="z" * 1500)
    assert "zzz" not in str(e.value)


def test_meta_data_must_be_short_json() -> None:
    assert turn(meta_data={"source": "é"}).meta_data == '{"source": "é"}'
    assert turn(meta_data={}).meta_data is None
    with pytest.raises(ArgumentError, match="meta_data: is not plain JSON"):
        turn(meta_data={"x": object()})
    with pytest.raises(ArgumentError, match="meta_data: is not plain JSON"):
        turn(meta_data={"x": float("nan")})
    with pytest.raises(ArgumentError, match="meta_data: is longer than 65,536 characters"):
        turn(meta_data={"x": "y" * 70_000})


def test_a_long_idempotency_key_is_refused() -> None:
    with pytest.raises(ArgumentError, match="idempotency_key: is longer than 256 characters"):
        turn(idempotency_key="k" * 257)


@given(st.text(st.characters(), max_size=50))
def test_storable_text_can_always_be_encoded(text: str) -> None:
    stored = storable(text + "\ud800\x00")
    assert "\x00" not in stored
    stored.encode()


@given(st.text(max_size=200), st.text(max_size=200))
def test_token_estimates_never_shrink_with_more_text(left: str, right: str) -> None:
    assert estimate_tokens(left + right) >= estimate_tokens(left) >= 1
