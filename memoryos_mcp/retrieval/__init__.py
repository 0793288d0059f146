"""Retrieval: one query searches all three tiers of a memory.

In RAM, `cache` holds the data that every query needs, including the page vectors (`page_index`). `ranking` orders the
candidates, `fitting` selects what fits the token budget, `retrieving` runs these steps, and `recall` defines the
result.
"""
