"""Retrieval: one query over the three tiers.

`cache` keeps in RAM what every query reads, including the page vectors in `page_index`. `ranking` orders candidates,
`budget` fits texts to tokens, `retrieving` combines these steps, and `recall` is the result.
"""
