"""Instructions that embedding models expect before each query and each passage, by model name.

Without its instructions, a model finds fewer relevant passages, but no error is reported. The comment above each row of
the table contains the address of the model card.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instructions:
    """Texts to put before a query and before a passage, including a final space if the model expects one."""

    query: str = ""
    passage: str = ""


_NONE = Instructions()
_RELEVANT_PASSAGES = Instructions(query="Represent this sentence for searching relevant passages: ")
_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# The first row whose pattern occurs in the name is used. Names also contain sizes, versions, file formats, or the
# prefix "text-embedding-".
_BY_NAME = tuple(
    (re.compile(rf"(?<![a-z0-9]){name}"), instructions)
    for name, instructions in (
        # https://huggingface.co/intfloat/multilingual-e5-large-instruct, https://huggingface.co/intfloat/e5-mistral-7b-instruct
        ("e5-(?:large|mistral-7b)-instruct", Instructions(query=f"{_WEB_SEARCH} ")),
        # https://huggingface.co/intfloat/e5-base-v2, https://huggingface.co/intfloat/multilingual-e5-base
        ("e5-(?:small|base|large)", Instructions(query="query: ", passage="passage: ")),
        # https://huggingface.co/BAAI/bge-large-zh-v1.5
        ("bge-(?:small|base|large)-zh", Instructions(query="为这个句子生成表示以用于检索相关文章：")),
        # https://huggingface.co/BAAI/bge-large-en-v1.5; bge-m3 needs none: https://huggingface.co/BAAI/bge-m3
        ("bge-(?:small|base|large)", _RELEVANT_PASSAGES),
        # https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1
        ("mxbai-embed-large", _RELEVANT_PASSAGES),
        # https://huggingface.co/nomic-ai/nomic-embed-text-v1.5, https://huggingface.co/nomic-ai/nomic-embed-text-v2-moe
        ("nomic-embed-text", Instructions(query="search_query: ", passage="search_document: ")),
        # https://huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0, which Ollama calls snowflake-arctic-embed2
        ("snowflake-arctic-embed(?:2|.*v2)", Instructions(query="query: ")),
        # https://huggingface.co/Snowflake/snowflake-arctic-embed-m
        ("snowflake-arctic-embed", _RELEVANT_PASSAGES),
        # https://huggingface.co/Qwen/Qwen3-Embedding-0.6B: no space after its "Query:"
        ("qwen3-embedding", Instructions(query=_WEB_SEARCH)),
        # https://huggingface.co/google/embeddinggemma-300m
        ("embeddinggemma", Instructions(query="task: search result | query: ", passage="title: none | text: ")),
    )
)


def instructions_of(name: str) -> Instructions:
    """Return the instructions for a model name such as ``BAAI/bge-small-en-v1.5``.

    Both instructions are empty if the model needs none or is unknown.
    """
    bare = re.split(r"[\\/]", name.strip().rstrip("\\/").lower())[-1]
    return next((instructions for pattern, instructions in _BY_NAME if pattern.search(bare)), _NONE)
