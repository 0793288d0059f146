"""Consolidation: the background work that turns pages into segments, profile and knowledge.

`embedding` computes the vectors of pages, `organising` files the backlog under chains and segments, and `promotion`
reads hot segments for profile and knowledge. A background loop of `worker` repeats a step of each. A step reads,
computes without a lock, and commits one transaction, which is refused if its inputs have changed.
"""
