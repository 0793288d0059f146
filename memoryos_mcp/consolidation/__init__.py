"""Consolidation: the background work that turns pages into segments, profile and knowledge.

`embedding` gives pages their vectors, `organising` files the backlog under chains and segments, `promotion` reads hot
segments for profile and knowledge. Each is a step that a background loop repeats: it reads, computes without a lock,
and commits in one transaction that checks its inputs.
"""
