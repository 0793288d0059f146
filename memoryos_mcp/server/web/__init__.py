"""The web pages on which people view and change their memory in a browser.

`pages` lists the addresses of all web pages. Each view, such as the timeline, has its own module. A view only calls
`engine.engine.MemoryEngine` and fills in a template from ``templates/``. Each web page can be read without scripts.
`sessions` contains the sessions of signed-in people, and `guard` protects the web pages.
"""
