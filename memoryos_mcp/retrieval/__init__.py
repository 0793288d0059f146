"""Retrieval: one query searches the short-term, mid-term and long-term memory.

`cache` is a copy in RAM of the data that every query needs, including the page vectors (`page_index`). `ranking` orders
the candidates, and `fitting` selects what fits the token budget. `retrieving` runs these steps, and `recall` defines
the result.
"""
