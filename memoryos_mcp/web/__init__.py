"""The pages on which people look at their memory in a browser.

`pages` has the list of all addresses, and each of the modules below it has the pages of one view. They use
`engine.engine.MemoryEngine` and contain no logic of their own. A page is a template in ``templates/``; it can be read
without scripts. `sessions` knows who is signed in, and `guard` protects the pages.
"""
