"""The memory model: pages, chains, segments, profile and knowledge, as every layer above shows them.

Values only: nothing here reads a store, a model or a clock.
"""
