"""Functions on text, without I/O and without knowledge of the memory.

`terms` and `stemming` prepare words for search, `prose` splits text into sentences, `addressees` finds names of the
speakers, `injection` finds prompt injections, `quoting` marks stored text as data, and `secrets` removes credentials.
"""
