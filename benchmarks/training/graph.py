"""The trained network as an ONNX file with 8 bits per weight, for one text at a time.

The graph consists of onnxruntime's own operators for attention and for products with 8-bit weights. An exported graph
has four times as many operators: onnxruntime takes longer to load it, and a short query takes longer too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

HEADS = 12
_EPSILON = 1e-12
_OWN = "com.microsoft"  # the domain of onnxruntime's own operators
_OPSETS = helper.make_opsetid("", 17), helper.make_opsetid(_OWN, 1)
_IR_VERSION = 8
# Matrices have seven bits, so that sums do not overflow on processors without VNNI.
_LARGEST = 64
_STEPS = 255

Weights = Mapping[str, NDArray[np.float32]]


def write(weights: Weights, file: Path) -> None:
    """Write the network whose weights have the names that `network.Network` gives them."""
    onnx.save(_Graph(weights).model(), file)


class _Graph:
    """Builds the graph. Each method adds operators, and returns the name of their result."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        states = self._embedding()
        for layer in range(sum(name.endswith("attention.self.query.bias") for name in self._weights)):
            states = self._layer(states, f"bert.encoder.layer.{layer}")
        first = self._add("Slice", states, self._numbers(0), self._numbers(1), self._numbers(1))
        self._add("Squeeze", self._unit(self._linear(first, "dense")), self._numbers(0, 1), result="vector")
        self._add("Squeeze", self._unit(self._linear(states, "projection")), self._numbers(0), result="tokens")
        sizes: dict[str, list[int | str]] = {
            "vector": [len(self._weights["dense.bias"])],
            "tokens": ["n", len(self._weights["projection.bias"])],
        }
        graph = helper.make_graph(
            self._nodes,
            "memoryos",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n"])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in sizes.items()],
            self._constants,
        )
        return helper.make_model(graph, opset_imports=_OPSETS, ir_version=_IR_VERSION)

    def _embedding(self) -> str:
        short, scale, zero = _in_bytes(self._weights["bert.embeddings.word_embeddings.weight"])
        rows = self._add("Gather", self._constant(short), "input_ids")
        words = self._add("DequantizeLinear", rows, self._constant(scale), self._constant(zero))
        kind = self._weights["bert.embeddings.token_type_embeddings.weight"][0]
        places = self._constant((self._weights["bert.embeddings.position_embeddings.weight"] + kind)[None])
        length = self._add("Shape", "input_ids", start=1)
        begun = self._add("Slice", places, self._numbers(0), length, self._numbers(1))
        summed = self._add("Add", words, begun)
        return self._add("LayerNormalization", summed, *self._scaling("bert.embeddings.LayerNorm"), epsilon=_EPSILON)

    def _layer(self, states: str, name: str) -> str:
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        sides = tuple(f"{states}.{part}" for part in ("query", "key", "value"))
        self._nodes.append(helper.make_node("Split", [self._linear(states, *parts)], sides, axis=-1))
        attended = self._own("MultiHeadAttention", *sides, num_heads=HEADS)
        inner = self._sum(self._linear(attended, f"{name}.attention.output.dense"), states, f"{name}.attention.output")
        widened = self._own("Gelu", self._linear(inner, f"{name}.intermediate.dense"))
        return self._sum(self._linear(widened, f"{name}.output.dense"), inner, f"{name}.output")

    def _linear(self, states: str, *names: str) -> str:
        """Add one product for all linear functions of ``names``. Their results are next to each other."""
        matrix = np.concatenate([self._weights[f"{name}.weight"] for name in names]).T
        scales = (np.abs(matrix).max(axis=0) / _LARGEST).astype(np.float32)
        short = np.rint(matrix / scales).astype(np.int8)
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        constants = (short, scales, np.zeros(len(scales), dtype=np.int8), bias)
        return self._own("DynamicQuantizeMatMul", states, *map(self._constant, constants))

    def _sum(self, states: str, before: str, name: str) -> str:
        scaling = self._scaling(f"{name}.LayerNorm")
        return self._own("SkipLayerNormalization", states, before, *scaling, epsilon=_EPSILON)

    def _scaling(self, name: str) -> Sequence[str]:
        return [self._constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias")]

    def _unit(self, vectors: str) -> str:
        return self._add("LpNormalization", vectors)

    def _own(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self._add(operator, *inputs, domain=_OWN, **attributes)

    def _add(self, operator: str, *inputs: str, result: str = "", domain: str = "", **attributes: Any) -> str:
        result = result or f"{len(self._nodes)}.{operator}"
        self._nodes.append(helper.make_node(operator, inputs, [result], domain=domain, **attributes))
        return result

    def _numbers(self, *numbers: int) -> str:
        return self._constant(np.array(numbers))

    def _constant(self, array: NDArray[np.generic]) -> str:
        name = f"constant.{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def _in_bytes(table: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.uint8]]:
    """Return a table in 8 bits, and the scale and the zero that restore it."""
    low, high = min(float(table.min()), 0.0), max(float(table.max()), 0.0)
    scale = np.float32((high - low) / _STEPS)
    zero = np.uint8(round(-low / float(scale)))
    return (np.rint(table / scale) + zero).astype(np.uint8), np.array(scale), np.array(zero)
