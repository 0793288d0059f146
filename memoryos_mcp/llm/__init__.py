"""Language models: what reads pages and says what they are about, and the way to an LLM behind it.

`analysis` is the protocol that the LLM analyst and its fallback share. `prompts` builds requests, `replies` checks the
answers, `extractive` is the fallback, and `chat` and `openai_chat` make the calls.
"""
