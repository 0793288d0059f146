"""The network that is trained: BERT with 12 layers, and two matrices for the vectors of texts and of tokens."""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel

from benchmarks.training import graph
from benchmarks.training.graph import HEADS
from memoryos_mcp.embedding.bundled import DIMENSION

LAYERS = 12
TOKEN_DIMENSION = 80


class Network(nn.Module):  # type: ignore[misc]
    """Turns sequences of token ids into vectors."""

    def __init__(self) -> None:
        super().__init__()
        sizes = BertConfig(
            hidden_size=DIMENSION,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=4 * DIMENSION,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )
        self.bert = BertModel(sizes, add_pooling_layer=False)
        self.dense = nn.Linear(DIMENSION, DIMENSION)
        self.projection = nn.Linear(DIMENSION, TOKEN_DIMENSION)

    def states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the last hidden state of each token, shape ``(b, n, 384)``."""
        found: Tensor = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        return found

    def vectors(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the unit vectors of texts, shape ``(b, 384)``, and of tokens, shape ``(b, n, 80)``."""
        return normalize(self.dense(states[:, 0]), dim=-1), normalize(self.projection(states), dim=-1)


def read(network: Network, file: Path) -> None:
    """Load BERT's weights from an ONNX file with fused operators."""
    fused = onnx.load(file).graph
    arrays = {each.name: numpy_helper.to_array(each).astype(np.float32) for each in fused.initializer}
    weights = {name: arrays[name] for name in network.bert.state_dict() if name in arrays}
    attention = [node.input for node in fused.node if node.op_type == "Attention"]
    products = [arrays[node.input[1]] for node in fused.node if node.op_type == "MatMul"]
    for layer, (_, matrix, bias, *_) in enumerate(attention):
        prefix = f"encoder.layer.{layer}"
        for place, part in enumerate(("query", "key", "value")):
            columns = slice(place * DIMENSION, (place + 1) * DIMENSION)
            weights[f"{prefix}.attention.self.{part}.weight"] = arrays[matrix][:, columns].T
            weights[f"{prefix}.attention.self.{part}.bias"] = arrays[bias][columns]
        for part, product in zip(("attention.output", "intermediate", "output"), products[3 * layer :], strict=False):
            weights[f"{prefix}.{part}.dense.weight"] = product.T
    network.bert.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})


def write(network: Network, file: Path) -> None:
    """Write the network as an ONNX file with 8 bits per weight."""
    graph.write({name: tensor.numpy() for name, tensor in network.state_dict().items()}, file)
