"""LLM clients, and the analysts, which find chains, topics, facts and traits in pages.

`analysis` defines the protocol of an analyst. `analyst` implements this protocol with an LLM, and `extractive` is the
fallback, which needs no LLM. `prompts` builds requests to the LLM, and `replies` validates the replies. `chat` defines
the protocol of a chat model, and `openai_chat` implements it with network calls.
"""
