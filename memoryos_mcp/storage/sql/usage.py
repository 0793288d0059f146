"""The recorded usage of LLMs, by day and purpose."""

from memoryos_mcp.model.stats import UsageEntry
from memoryos_mcp.storage.sql.connection import Connection

_SUMS = "sum(calls), sum(failed_calls), sum(prompt_tokens), sum(completion_tokens)"


def add(connection: Connection, entry: UsageEntry) -> None:
    """Add ``entry`` to the stored usage for the same day and purpose."""
    connection.execute(
        "INSERT INTO llm_usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (day, purpose) DO UPDATE SET "
        "calls = llm_usage.calls + excluded.calls, failed_calls = llm_usage.failed_calls + excluded.failed_calls, "
        "prompt_tokens = llm_usage.prompt_tokens + excluded.prompt_tokens, "
        "completion_tokens = llm_usage.completion_tokens + excluded.completion_tokens",
        (
            entry.day,
            entry.purpose,
            entry.calls,
            entry.failed_calls,
            entry.prompt_tokens,
            entry.completion_tokens,
        ),
    )


def since(connection: Connection, day: str) -> list[UsageEntry]:
    """Return the usage for each day and purpose from ``day`` on, the oldest day first."""
    sql = (
        "SELECT day, purpose, calls, failed_calls, prompt_tokens, completion_tokens FROM llm_usage WHERE day >= ? "
        "ORDER BY day, purpose"
    )
    return [UsageEntry(*row) for row in connection.execute(sql, (day,))]


def of_day(connection: Connection, day: str | None) -> list[UsageEntry]:
    """Return the usage for each purpose on one ``day``. With None, return the totals over all days."""
    sql = f"SELECT ?1, purpose, {_SUMS} FROM llm_usage WHERE ?1 IN ('', day) GROUP BY purpose ORDER BY purpose"  # noqa: S608 - constant
    return [UsageEntry(*row) for row in connection.execute(sql, (day or "",))]
