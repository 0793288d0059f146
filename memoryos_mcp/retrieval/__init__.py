"""Retrieval: search in all three tiers of a memory with one query.

`cache` holds the data that every query reads in RAM, including the page vectors in `page_index`. `ranking` orders the
candidates, `fitting` fits them to the token budget, `retrieving` combines these steps, and `recall` is the result.
"""
