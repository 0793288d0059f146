"""Trains the bundled embedding model on the made-up conversations beside this file.

Run ``python -m benchmarks.training --base FILE``. The base is bge-small-en-v1.5 as ONNX in 16 bits with fused
operators, as the package ``paritok`` 1.3.14 contains it. The result is an ONNX file with 8 bits per weight, which turns
the ids of a text's tokens into its vector and those of its tokens. On two cores this takes about half an hour.

Language models wrote ``conversations.jsonl``. They had seen neither the benchmarks nor the code. Each question asks
about pages in other words than the pages, and names all pages that answer it. The wrong answers to learn from are other
pages of the same conversation, and a few pages of other conversations.
"""
