"""Retrieval: one query over the three tiers.

`cache` holds in RAM what every query reads, `page_index` the page vectors among it; `ranking` orders candidates;
`budget` fits texts to tokens; `retrieving` is the way through them, and `recall` what comes out.
"""
