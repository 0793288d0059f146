"""Embedding models of a few kilobytes with random weights, in the architectures and file formats of real ones.

The model libraries are imported when a model is made: pytest imports this module in each of its processes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DIMENSION = 32
CORPUS = [
    "On day one we walked three miles along the river, and the water was cold.",
    "My sister keeps bees on the roof of her house in Porto. She sells the honey.",
    "Represent this sentence for searching relevant passages: query: passage:",
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
]


def bge_shaped(folder: Path, *, seed: int = 1) -> Path:
    """Save an XLM-RoBERTa with a SentencePiece-like tokenizer, like BGE-M3, without the library's modules."""
    from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=marks, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=8192,
    )
    config = XLMRobertaConfig(
        vocab_size=len(fast),
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **_sizes(),
    )
    return _saved(XLMRobertaModel, config, fast, folder, seed)


def qwen_shaped(folder: Path) -> Path:
    """Save a Qwen3 with a byte-level tokenizer that ends each text with a mark, like Qwen3-Embedding."""
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A $B <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>", model_max_length=32_768
    )
    config = Qwen3Config(
        vocab_size=len(fast),
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=1024,
        pad_token_id=0,
        **_sizes(),
    )
    return _saved(Qwen3Model, config, fast, folder, 2)


def byte_shaped(folder: Path) -> Path:
    """Save a T5 encoder of bytes, whose tokenizer cannot return the positions of its pieces."""
    from transformers import ByT5Tokenizer, T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=384, d_model=DIMENSION, d_kv=8, d_ff=64, num_layers=2, num_heads=4, architectures=["T5EncoderModel"]
    )
    return _saved(T5EncoderModel, config, ByT5Tokenizer(model_max_length=128), folder, 3)


def static(folder: Path) -> Path:
    """Save a table of word vectors, without a vector for unknown letters."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    torch.manual_seed(4)
    module = StaticEmbedding(tokenizer, embedding_dim=DIMENSION)
    SentenceTransformer(modules=[module], device="cpu").save_pretrained(str(folder), create_model_card=False)
    return folder


def with_modules(plain: Path, folder: Path, pooling: str, **saved: Any) -> Path:
    """Save a plain model as the library does, with modules and prompts."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    transformer = Transformer(str(plain))
    SentenceTransformer(
        modules=[transformer, Pooling(DIMENSION, pooling), Normalize()], device="cpu", **saved
    ).save_pretrained(str(folder), create_model_card=False)
    return folder


def spoilt(folder: Path, value: float) -> Path:
    """Save a model whose weights are all the same number."""
    import torch
    from transformers import XLMRobertaModel

    bge_shaped(folder)
    model = XLMRobertaModel.from_pretrained(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    model.save_pretrained(folder)
    return folder


def _sizes() -> dict[str, int]:
    return {"hidden_size": DIMENSION, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def _saved(kind: "type[PreTrainedModel]", config: Any, tokenizer: Any, folder: Path, seed: int) -> Path:
    import torch

    torch.manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Ten times the usual spread of new weights, with which all texts would get nearly the same vector.
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
