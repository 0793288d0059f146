"""The memory model: value objects for pages, chains, segments, the profile and knowledge.

Most other packages use these objects. Nothing in this package accesses a store, an LLM or an embedding model.
"""
