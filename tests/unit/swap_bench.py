"""A swapper to test: models that do nothing, a clock that is set by hand, and no frames."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.swap.loader import Answer
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.served import ServedModel
from elements.inference.swap.status import SwapStatus
from elements.inference.swap.swap import Swapper
from elements.metadata.detections import Detections
from tests.waiting import LIMIT_S

BOX = (10.0, 10.0, 50.0, 50.0)


def found(*boxes) -> Detections:
    return Detections(np.array(boxes, np.float32).reshape(-1, 4), np.full(len(boxes), 0.9), np.zeros(len(boxes)))


@dataclass
class FakeModel:
    closed: threading.Event = field(default_factory=threading.Event)

    def load(self) -> None: ...

    def infer(self, frames) -> list[Detections]:
        return [found(BOX) for _ in frames]

    def close(self) -> None:
        self.closed.set()


@dataclass
class Bench:
    """A swapper whose models are named a, b, c … and whose loading can be held up."""

    options: SwapOptions = field(default_factory=SwapOptions)
    now: float = 0.0
    contents: dict[str, int] = field(default_factory=dict)
    steps: list[SwapStatus] = field(default_factory=list)
    loaded: list[ServedModel] = field(default_factory=list)
    loading: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.go.set()
        self.swapper = Swapper(
            self.options,
            self.prepare,
            self.steps.append,
            self.load,
            lambda config, _: self.version_of(config.path),
            self.clock,
        )
        self.first = self.swapper.open(ModelConfig("a"))

    def load(self, config: ModelConfig) -> ServedModel:
        if config.path != "a":
            self.loading.set()
            assert self.go.wait(LIMIT_S)
        if config.path == "garbage":
            raise ModelError("model 'garbage': it is not a complete ONNX file")
        self.loaded.append(ServedModel(config, FakeModel(), self.version_of(config.path)))
        return self.loaded[-1]

    def version_of(self, path: str) -> str:
        return f"{path}@{self.contents.get(path, 1)}"

    def clock(self) -> float:
        return self.now

    def prepare(self, served: ServedModel, source_id: int | None) -> None:
        if served.config.path == "unfit":
            raise ModelError("its output is NaN")
        if served.config.path == "exits":
            raise SystemExit(3)

    def request(self, path: str, source_id: int | None = None) -> Answer:
        return self.swapper.request(ModelConfig(path), source_id)

    def swap(self, path: str, source_id: int | None = None) -> SwapStatus:
        return self.request(path, source_id).result(LIMIT_S)

    def serves(self, source_id: int | None = None) -> str:
        return self.swapper.active(source_id).config.path

    def states(self, path: str) -> list[str]:
        return [str(step.state) for step in self.steps if step.model == path]

    def is_closed(self, path: str) -> bool:
        """Whether all instances of a model are closed; closing has a thread of its own."""
        return all(m.model.closed.wait(LIMIT_S) for m in self.loaded if m.config.path == path)

    def is_open(self, path: str) -> bool:
        return any(not m.model.closed.is_set() for m in self.loaded if m.config.path == path)
