"""Language models: what reads pages and says what they are about, and the way to an LLM behind it.

`analysis` is the protocol that an LLM and its fallback share, `prompts` and `replies` are what an LLM is asked and how
its answers are checked, `extractive` is the fallback, `chat` and `openai_chat` are the calls.
"""
