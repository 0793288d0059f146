"""LLM clients, and the analysis of pages by an LLM or by its fallback.

`analysis` defines the protocol of an analyst. `analyst` implements it with an LLM, and `extractive` is the fallback,
which needs no LLM. `prompts` builds requests to the LLM, and `replies` validates the replies. `chat` defines the
protocol of a chat model, and `openai_chat` is the network client.
"""
