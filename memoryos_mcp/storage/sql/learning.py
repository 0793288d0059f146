"""Storage of the traits and facts that were learned from pages."""

from memoryos_mcp.storage.sql import longterm, midterm
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.values import Learning, StoreOptions


def store_learning(connection: Connection, learning: Learning, options: StoreOptions, now_us: int) -> bool:
    """Store the traits and facts that were learned from pages, mark the pages as read, and return True.

    Return False, and store nothing, if ``learning`` no longer matches the memory; see `longterm.is_current`.
    """
    if not longterm.is_current(connection, learning, options.owner, now_us):
        return False
    longterm.set_traits(connection, learning, now_us)
    longterm.drop_replaced_facts(connection, learning, options.owner)
    longterm.change_knowledge(connection, learning, options.owner, now_us)
    if learning.is_reading:
        midterm.mark_read(connection, learning.pages, learning.learner)
    if learning.segments:
        midterm.mark_analysed(connection, learning)
    longterm.drop_replaced_traits(connection, learning, now_us)
    longterm.archive_facts(connection, options.knowledge_capacity, now_us)
    return True
