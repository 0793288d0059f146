"""Text: terms, names, quoting, and what must not be stored. Strings in, strings out.

`terms` and `stemming` prepare words for search, `addressees` finds who is spoken to, `injection` finds instructions in
stored text, `quoting` keeps stored text apart from our own, and `secrets` removes credentials.
"""
