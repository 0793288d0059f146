"""Consolidation: the background work that turns pages into segments, profile and knowledge.

`embedding` computes vectors. `reading` extracts facts from new pages. `organising` assigns the pages of the backlog to
chains and segments. `promotion` extracts traits from hot segments. For each of these tasks, `worker` has a background
loop that repeats a step. A step reads its inputs, computes without a lock, and commits one transaction. The transaction
is refused if the inputs have changed meanwhile.
"""
