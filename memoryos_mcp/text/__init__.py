"""Text: functions that take and return text and know nothing of the memory.

`terms` and `stemming` prepare words for search, `prose` splits text into sentences, `addressees` finds names of the
speakers, `injection` finds prompt injections, `quoting` marks stored text as data, and `secrets` removes credentials.
"""
