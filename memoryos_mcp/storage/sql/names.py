"""Counts, for each name, the pages that use the name to address the user or the assistant."""

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.text.addressees import addressed


def called(user_input: str, agent_response: str) -> list[tuple[str, int, int]]:
    """Return a tuple for each name in a page: the name, whether the user uses it, and whether the assistant uses it.

    The last two values are 1 for yes and 0 for no.
    """
    by_user, by_agent = addressed(user_input), addressed(agent_response)
    return [(name, int(name in by_user), int(name in by_agent)) for name in sorted(by_user | by_agent)]


def index_names(connection: Connection, user_input: str, agent_response: str) -> None:
    """Add a new page to the counts of the names in it. The caller opens the transaction."""
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
