"""The memory model: pages, chains, segments, profile and knowledge, as values that all layers above share.

Values only: nothing here reads a store, a model or a clock.
"""
