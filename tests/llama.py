"""A llama.cpp server in this process, with the very small model that the environment names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

MODEL = os.environ.get("MEMORYOS_GGUF")
DATA = os.environ.get("MEMORYOS_EVAL_DATA")
CONTEXT_TOKENS = 8192
SEED = 1


@contextmanager
def running_llama(*, repeat_penalty: float | None = None) -> Iterator[str]:
    """Yield the address of a server on a free port of this machine.

    ``repeat_penalty`` prevents endless repetitions when so small a model writes free text.
    """
    xllamacpp = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = MODEL
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.warmup = False
    parameters.sampling.seed = SEED
    parameters.cpuparams.n_threads = os.cpu_count() or 1
    if repeat_penalty is not None:
        parameters.sampling.penalty_repeat = repeat_penalty
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server
