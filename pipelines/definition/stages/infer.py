"""The infer stage."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from pipelines.definition.fields import Auto, BatchSize, Boolean, FilePath, Integer, Name, Number
from pipelines.definition.sections import OneKey, option
from pipelines.definition.stages.model_choices import Color, Layout, Letterbox, ModelTask, Scale
from pipelines.definition.stages.operate_on import OperateOn
from pipelines.definition.stages.types import (
    ByteValue,
    ClassFilter,
    Device,
    ImportPath,
    Labels,
    Model,
    Params,
    Size,
    StageName,
    UniqueId,
)
from pipelines.definition.swap import Swap


class InferStage(OneKey):
    """Run a model on every frame, or on the objects of another infer stage."""

    KEY: ClassVar[str] = "infer"

    name: StageName | None = option(None, description="Name of this stage; default: infer, infer-2 …")
    model: Model = Field(description="Path of a model file, or a Python class as package.module:Class.")
    task: ModelTask = option(
        "auto",
        description="What the model finds: boxes, rotated boxes (obb), masks, key points; or the class of the whole "
        "picture, or a vector for it; auto: as the file or its outputs tell.",
    )
    engine: Literal["auto", "onnx", "openvino", "torch", "tensorrt", "ultralytics"] = option(
        "auto", description="What runs the model; auto: by file type."
    )
    precision: Literal["auto", "fp32", "fp16"] = option(
        "auto", description="auto: as the file was made, and fp16 for torch on a GPU."
    )
    weights: FilePath | None = option(None, description="State dict for a torch.nn.Module class of your own.")
    trust: Boolean = option(
        False, description="Load a pickled model or exported program, which can run any code: only from who you trust."
    )
    compile: Boolean = option(
        False,
        description="Engine torch on a GPU: torch.compile the network for batch_size pictures of input_size. Faster, "
        "but loading the model takes some 20 s longer.",
    )
    layout: Layout = option(
        "auto", description="Layout of the model's outputs (gstorch models layouts); auto: read from the model."
    )
    labels: Labels = option(
        None, description="File with one class name per line, or the names; default: the model's own."
    )
    confidence: Number = option(0.25, ge=0, le=1, description="Objects below this confidence are left out.")
    iou: Number = option(0.45, ge=0, le=1, description="Boxes of one class that overlap more are merged (NMS).")
    interval: Integer = option(0, ge=0, description="Frames skipped between two inferences of a source.")
    device: Device = option("auto", description="auto, cpu, cuda or cuda:N; only auto falls back.")
    batch_size: Auto[BatchSize] = option("auto", description="Frames per inference; auto: the mux's batch.")
    unique_id: UniqueId | None = option(None, description="Component id in the metadata; default: 1, 2 … by order.")
    letterbox: Letterbox = option("auto", description="How a frame is fitted to the model's input; auto: by layout.")
    color: Color = option("auto", description="Channel order of the model's input.")
    scale: Scale = option(
        "auto", description="Range of the model's input values; imagenet: 0-1, less ImageNet's mean, by its deviation."
    )
    pad: Auto[ByteValue] = option("auto", description="Value of the letterbox border; auto: by layout.")
    coordinates: Literal["auto", "pixel", "normalized"] = option("auto", description="Unit of the model's boxes.")
    input_size: Auto[Size] = option(
        "auto", description="Input of a model with free size: 640 or 640x384 (width x height)."
    )
    rectangular: Auto[Boolean] = option(
        "auto",
        description="Cut the padding of the letterbox to the network's stride, which is faster and moves boxes and "
        "scores; auto: as the model's authors do, where its input size is free and frames are centred.",
    )
    classes: tuple[ClassFilter, ...] | None = option(
        None, min_length=1, description="Classes to keep, names or ids; default: all."
    )
    operate_on: OperateOn | None = option(
        None, title="Operate on", description="Objects of another infer stage to work on; default: whole frames."
    )
    merge_with: Name | None = option(
        None, description="Earlier infer stage whose unique_id this one's objects get, as if one model had found all."
    )
    class_offset: Integer = option(
        0, ge=0, le=2**31 - 1, description="Added to class ids, to keep them apart from other stages'."
    )
    params: Params = option(None, description="Parameters of a class of your own, or of postprocess.")
    postprocess: ImportPath | None = option(
        None, description="Function of your own that reads the outputs of a model file, as package.module:function."
    )
    on_error: Literal["stop", "skip"] = option(
        "stop", description="When the model fails on a frame: stop the run, or skip the frame and count it."
    )
    reload: Literal["off", "watch"] = option(
        "off", description="watch: a model file that changes is loaded again while the pipeline runs."
    )
    swap: Swap = option({}, title="Swap", description="How another model takes over while the pipeline runs.")
