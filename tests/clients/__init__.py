"""Programs that use the memory by clients other than the SDK's own, each run in an environment of its own.

Each takes one argument, a JSON object: ``transport`` (stdio, http or sse), ``command`` (of the server, for stdio) or
``url``, ``token`` (or null), ``say``, ``ask``, ``read`` and ``calls``. It lists the tools, stores ``say`` with
`add_memory`, looks for ``ask`` with `retrieve_memory`, reads the resource ``read`` and makes the ``calls``, pairs of a
tool and its arguments. On stdout it writes one line, a JSON object: ``protocol`` (the version agreed upon), ``tools``
(names), ``receipt``, ``found`` and ``results`` of the calls (structured results), ``resource`` (text) and
``complaints`` (whatever the client could not make sense of). If the server refuses, it writes ``refusal`` alone, the
text of the client's error.
"""
