"""What a model file is: inputs, outputs, task and layout, and what it says of itself."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import engine_name, is_class_path, open_engine
from elements.inference.errors import ModelError
from elements.inference.loading import input_size, load_model, trial
from elements.inference.own import is_network
from elements.inference.params import import_object
from elements.inference.preprocess import InputSpec
from elements.inference.single import SingleModel
from elements.inference.swap.served import ANY_ERROR
from elements.inference.swap.version import version_of


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its name, shape (a text where a dimension is free) and number type."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(slots=True)
class ModelFacts:
    """What `inspect` finds.

    Attributes:
        path: the file.
        engine: what runs it.
        inputs: as the file declares them.
        outputs: as a trial run gives them.
        file: what the file says beside its metadata (ONNX: opset, IR version, producer).
        metadata: its own entries.
        problem: why it cannot be used; the rest is then unknown.
        task: what it does.
        layout: how its outputs are read.
        shapes: the layout in words.
        names: class names by number.
        input_size: (width, height) of the full input.
        rectangular: the multiple to which smaller inputs are cut; 0: always the full input.
        preprocess: how frames become input.
    """

    path: str
    engine: str
    inputs: list[Port]
    outputs: list[Port]
    file: dict[str, str]
    metadata: dict[str, str]
    problem: str | None = None
    task: str | None = None
    layout: str | None = None
    shapes: str | None = None
    names: tuple[str, ...] = ()
    input_size: tuple[int, int] | None = None
    rectangular: int = 0
    preprocess: dict[str, Any] = field(default_factory=dict)


def inspect(config: ModelConfig) -> ModelFacts:
    """Load a model, run it on noise, and tell its task and layout.

    Raises:
        ModelError: if the file cannot be loaded or run at all. That nothing here reads its outputs is no error but
            ``problem``.
    """
    if is_class_path(config.path) and (own := _own_class(config)) is not None:
        return own
    engine = open_engine(config)
    try:
        size = input_size(config, engine)
        given = trial(engine, size)
        outputs = [
            Port(name, tuple(output.shape), str(output.dtype))
            for name, output in zip(engine.output_names, given, strict=True)
        ]
        facts = ModelFacts(
            path=config.path,
            engine=engine_name(config),
            inputs=[_port(engine.spec)],
            outputs=outputs,
            file=_onnx_facts(config.path) if Path(config.path).suffix.lower() == ".onnx" else {},
            metadata=dict(engine.metadata),
            input_size=size,
        )
    finally:
        engine.close()
    try:
        model = load_model(config)
    except ModelError as error:
        facts.problem = str(error)
        return facts
    try:
        facts.task, facts.layout = model.decoder.task, model.decoder.layout
        facts.shapes = model.decoder.shapes[model.decoder.task]
        facts.names, facts.input_size, facts.rectangular = model.names, model.size, model.stride
        facts.preprocess = asdict(model.preprocess)
    finally:
        model.engine.close()
    return facts


def _own_class(config: ModelConfig) -> ModelFacts | None:
    """What a class of one's own says of itself; ``None`` if it is only a network, which is read like a file."""
    with contextlib.suppress(*ANY_ERROR):  # loading tells it better
        if is_network(import_object(config.path)):
            return None
    with SingleModel(config) as single:
        task = str(getattr(single.model, "task", "detect"))
        version = {"version": version_of(config, single.model)}
    return ModelFacts(config.path, "class of your own", [], [], version, {}, task=task, names=single.names)


def _port(spec: InputSpec) -> Port:
    width, height = (side or free for side, free in zip(spec.size, ("width", "height"), strict=True))
    batch = spec.batch or "batch"
    shape = (batch, height, width, 3) if spec.channels_last else (batch, 3, height, width)
    return Port(spec.name, shape, str(spec.dtype))


def _onnx_facts(path: str) -> dict[str, str]:
    """Opset, IR version and producer, where the package onnx is installed."""
    try:
        import onnx
    except ImportError:
        return {"opset": "unknown: pip install onnx"}
    model = onnx.load(path, load_external_data=False)
    opsets = ", ".join(f"{opset.domain or 'ai.onnx'} {opset.version}" for opset in model.opset_import)
    producer = f"{model.producer_name} {model.producer_version}".strip()
    return {"opset": opsets, "ir_version": str(model.ir_version), "producer": producer or "not told"}
