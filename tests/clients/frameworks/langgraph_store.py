"""Uses the store of docs/frameworks.md: `langgraph_store.py store|find|limits`."""

import asyncio
import sys

from recipe import PAGES, PageStore

from memoryos_mcp import Memoryos
from memoryos_mcp.errors import ArgumentError

VALUE = {"user_input": "I keep bees on the roof.", "agent_response": "How many hives?"}


def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind:
        return
    raise AssertionError(f"{arguments} was accepted")


def limits(store):
    store.put(PAGES, "first", VALUE)
    refused(NotImplementedError, store.put, PAGES, "second", {"colour": "blue"})
    refused(NotImplementedError, store.put, PAGES, "second", {**VALUE, "colour": "blue"})
    refused(NotImplementedError, store.put, ("users", "ada"), "second", VALUE)
    refused(NotImplementedError, store.search, PAGES)
    refused(NotImplementedError, store.search, PAGES, query="bees", filter={"user_input": "x"})
    refused(NotImplementedError, store.search, PAGES, query="bees", offset=1)
    refused(NotImplementedError, store.list_namespaces)
    refused(ArgumentError, store.get, PAGES, "first")
    [hit] = store.search(PAGES, query="bees")
    store.delete(PAGES, hit.key)
    assert store.search(PAGES, query="bees") == []


def find(store):
    [hit] = store.search(PAGES, query="Where do I keep bees?")
    assert hit.value == VALUE
    assert store.get(PAGES, hit.key).value == VALUE
    assert asyncio.run(store.asearch(PAGES, query="bees")) == [hit]


with Memoryos("ada") as memory:
    match sys.argv[1]:
        case "store":
            PageStore(memory).put(PAGES, "first", VALUE)
        case "find":
            find(PageStore(memory))
        case "limits":
            limits(PageStore(memory))
