"""Stores the traits and facts learned from pages, and marks the pages as read."""

import apsw

from memoryos_mcp.storage.sqlite import longterm, midterm
from memoryos_mcp.storage.values import Learning, StoreOptions


def store_learning(connection: apsw.Connection, learning: Learning, options: StoreOptions, now_us: int) -> bool:
    """Store lessons; return False, with nothing written, if the profile or facts have changed since."""
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
