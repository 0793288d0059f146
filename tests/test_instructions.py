"""Instructions that embedding models expect before queries and passages."""

import pytest

from memoryos_mcp.embedding.instructions import Instructions, instructions_of

E5 = Instructions("query: ", "passage: ")
E5_INSTRUCT = Instructions(
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
QWEN = Instructions("Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:")
BGE = Instructions("Represent this sentence for searching relevant passages: ")
BGE_CHINESE = Instructions("为这个句子生成表示以用于检索相关文章：")
NOMIC = Instructions("search_query: ", "search_document: ")
ARCTIC_2 = Instructions("query: ")
GEMMA = Instructions("task: search result | query: ", "title: none | text: ")
NONE = Instructions()


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("intfloat/e5-small-v2", E5),
        ("intfloat/multilingual-e5-base", E5),
        (" MULTILINGUAL-E5-LARGE ", E5),
        ("intfloat/multilingual-e5-large-instruct", E5_INSTRUCT),
        ("intfloat/e5-mistral-7b-instruct", E5_INSTRUCT),
        ("nvidia/nv-embedqa-e5-v5", NONE),
        ("BAAI/bge-small-en-v1.5", BGE),
        ("BAAI/bge-large-en", BGE),
        ("bge-large:335m", BGE),
        ("bge-base-zh-v1.5", BGE_CHINESE),
        ("BAAI/bge-m3", NONE),
        ("mixedbread-ai/mxbai-embed-large-v1", BGE),
        ("mxbai-embed-large:latest", BGE),
        ("nomic-embed-text", NOMIC),
        ("nomic-ai/nomic-embed-text-v2-moe", NOMIC),
        ("text-embedding-nomic-embed-text-v1.5", NOMIC),
        ("/models/nomic-embed-text-v1.5.Q8_0.gguf", NOMIC),
        ("C:\\models\\e5-base-v2\\", E5),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", BGE),
        ("snowflake-arctic-embed:335m", BGE),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", ARCTIC_2),
        ("snowflake-arctic-embed2", ARCTIC_2),
        ("Qwen/Qwen3-Embedding-0.6B", QWEN),
        ("qwen3-embedding:8b", QWEN),
        ("google/embeddinggemma-300m", GEMMA),
        ("text-embedding-3-small", NONE),
        ("text-embedding-ada-002", NONE),
        ("memoryos-small", NONE),
        ("cafe5-base", NONE),
        ("", NONE),
    ],
)
def test_instructions_follow_from_the_models_name(name: str, instructions: Instructions) -> None:
    assert instructions_of(name) == instructions
