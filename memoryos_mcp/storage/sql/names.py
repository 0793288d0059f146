"""Counts, for each name, the pages that use the name to address the user or the assistant."""

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.text.addressees import addressed


def called(user_input: str, agent_response: str) -> list[tuple[str, int, int]]:
    """Return the names by which the user and the assistant address each other on a page.

    Each tuple contains a name, 1 if the user uses it (otherwise 0), and 1 if the assistant uses it (otherwise 0).
    """
    by_user, by_agent = addressed(user_input), addressed(agent_response)
    return [(name, int(name in by_user), int(name in by_agent)) for name in sorted(by_user | by_agent)]


def index_names(connection: Connection, user_input: str, agent_response: str) -> None:
    """Increase the page counts of the names on a new page. The caller opens the transaction."""
    connection.executemany(
        "INSERT INTO names (name, pages, called_by_user, called_by_agent) VALUES (?1, 1, ?2, ?3) "
        "ON CONFLICT (name) DO UPDATE SET pages = names.pages + 1, "
        "called_by_user = names.called_by_user + ?2, called_by_agent = names.called_by_agent + ?3",
        called(user_input, agent_response),
    )


def unindex_names(connection: Connection, user_input: str, agent_response: str) -> None:
    """Undo the effect of `index_names` for a page. The caller opens the transaction.

    A name whose count becomes 0 is not deleted.
    """
    connection.executemany(
        "UPDATE names SET pages = pages - 1, called_by_user = called_by_user - ?2, "
        "called_by_agent = called_by_agent - ?3 WHERE name = ?1",
        called(user_input, agent_response),
    )
