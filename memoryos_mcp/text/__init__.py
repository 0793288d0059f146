"""Functions that process text and do not access the memory.

`terms` and `stemming` prepare words for search. `prose` splits text into sentences. `addressees` finds the names of the
speakers. `injection` finds prompt injections. `quoting` marks stored text as data. `secrets` replaces credentials with
placeholders.
"""
