"""LLM: analysis of pages by an LLM or by the fallback, and the clients for LLM APIs.

`analysis` is the protocol that the LLM analyst and its fallback share. `prompts` builds requests, `replies` checks the
answers, `extractive` is the fallback, and `chat` and `openai_chat` make the calls.
"""
