"""The recorded usage of LLMs, by day and purpose."""

import apsw

from memoryos_mcp.model.stats import UsageEntry

_SUMS = "sum(calls), sum(failed_calls), sum(prompt_tokens), sum(completion_tokens)"


def add(connection: apsw.Connection, entry: UsageEntry) -> None:
    """Add ``entry`` to the stored usage for the same day and purpose."""
    connection.execute(
        "INSERT INTO llm_usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (day, purpose) DO UPDATE SET "
        "calls = calls + excluded.calls, failed_calls = failed_calls + excluded.failed_calls, "
        "prompt_tokens = prompt_tokens + excluded.prompt_tokens, "
        "completion_tokens = completion_tokens + excluded.completion_tokens",
        (
            entry.day,
            entry.purpose,
            entry.calls,
            entry.failed_calls,
            entry.prompt_tokens,
            entry.completion_tokens,
        ),
    )


def of_day(connection: apsw.Connection, day: str | None) -> list[UsageEntry]:
    """Return the usage for each purpose on one ``day``. With None, return the totals over all days."""
    sql = f"SELECT ?1, purpose, {_SUMS} FROM llm_usage WHERE ?1 IN ('', day) GROUP BY purpose ORDER BY purpose"  # noqa: S608 - constant
    return [UsageEntry(*row) for row in connection.execute(sql, (day or "",))]
