"""Trains a small embedding model on the made-up conversations beside this file.

Run ``python -m benchmarks.training --base FILE --target FILE``. The base is bge-small-en-v1.5 as ONNX in 16 bits with
fused operators, as the package ``paritok`` 1.3.14 contains it. The target is an ONNX file with 8 bits per weight, which
turns the ids of a text's tokens into its vector and those of its tokens. On two cores this takes about half an hour.

Language models wrote ``conversations.jsonl``, each file of them alone; they had seen no benchmark and no code. Each
question asks about pages in other words than the pages, and names all pages that answer it. The wrong answers to learn
from are the other pages of the same conversation.
"""
