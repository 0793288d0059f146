"""Conversion between times and the numbers that are stored for them."""

from datetime import UTC, datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(moment: datetime) -> int:
    """Convert a time to microseconds since 1970-01-01 UTC, without rounding."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int, utc_offset_s: int = 0) -> datetime:
    """Convert microseconds since 1970-01-01 UTC to a time with the given UTC offset."""
    instant = _EPOCH + timedelta(microseconds=us)
    return instant.astimezone(timezone(timedelta(seconds=utc_offset_s))) if utc_offset_s else instant


def any_time(us: int) -> datetime:
    """Convert microseconds since 1970-01-01 UTC to a time.

    Unlike `from_us`, return 1970-01-01 UTC if the value is out of range, as it may be on a damaged page.
    """
    try:
        return from_us(us)
    except OverflowError:
        return _EPOCH


def offset_s(moment: datetime) -> int:
    """Return a time's UTC offset in whole seconds; 0 if the time has no time zone."""
    offset = moment.utcoffset()
    return int(offset.total_seconds()) if offset else 0
