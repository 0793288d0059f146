"""The network that is trained: BERT with 12 layers, and two matrices for the vectors of texts and of tokens."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel

from memoryos_mcp.embedding.bundled import DIMENSION

LAYERS, HEADS = 12, 12
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


class _OneText(nn.Module):  # type: ignore[misc]
    """The network for a single sequence, as the server calls it."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        vector, tokens = self.network.vectors(self.network.states(ids, torch.ones_like(ids)))
        return vector[0], tokens[0]


def read(network: Network, file: Path) -> None:
    """Load BERT's weights from an ONNX file with fused operators."""
    graph = onnx.load(file).graph
    arrays = {each.name: numpy_helper.to_array(each).astype(np.float32) for each in graph.initializer}
    weights = {name: arrays[name] for name in network.bert.state_dict() if name in arrays}
    attention = [node.input for node in graph.node if node.op_type == "Attention"]
    products = [arrays[node.input[1]] for node in graph.node if node.op_type == "MatMul"]
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
    """Write the network with 8 bits per weight.

    Weights have seven bits and a scale for each column, so that sums do not overflow on processors without VNNI.
    """
    with tempfile.TemporaryDirectory() as folder:
        exact, short = Path(folder) / "exact.onnx", Path(folder) / "short.onnx"
        _export(network, exact)
        quantize_dynamic(exact, short, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        shutil.move(short, file)


def _export(network: Network, file: Path) -> None:
    torch.onnx.export(
        _OneText(network).eval(),
        (torch.ones((1, 16), dtype=torch.long),),
        str(file),
        input_names=["input_ids"],
        output_names=["vector", "tokens"],
        dynamic_axes={"input_ids": {1: "n"}, "tokens": {0: "n"}},
        opset_version=17,
        dynamo=False,
    )
