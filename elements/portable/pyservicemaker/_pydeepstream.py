"""Where pyservicemaker keeps the classes that its package does not export. It only names them."""

from elements.portable.pyservicemaker.appdata import Feeder, Receiver
from elements.portable.pyservicemaker.buffer import Buffer
from elements.portable.pyservicemaker.messages import (
    DynamicSourceMessage,
    EOSMessage,
    PipelineMessage,
    PipelineState,
    StateTransitionMessage,
)
from elements.portable.pyservicemaker.metadata import (
    BatchMetadata,
    ClassifierMetadata,
    DisplayMetadata,
    FrameMetadata,
    LabelInfo,
    ObjectMetadata,
)
from elements.portable.pyservicemaker.node import Node
from elements.portable.pyservicemaker.operators import (
    BatchMetadataOperator,
    BufferObserver,
    BufferOperator,
    BufferProvider,
    BufferRetriever,
)
from elements.portable.pyservicemaker.probes import Object, Probe
from elements.portable.pyservicemaker.tensor import ColorFormat, Tensor, as_tensor
from elements.portable.pyservicemaker.user_metadata import UserMetadata

__all__ = [
    "BatchMetadata",
    "BatchMetadataOperator",
    "Buffer",
    "BufferObserver",
    "BufferOperator",
    "BufferProvider",
    "BufferRetriever",
    "ClassifierMetadata",
    "ColorFormat",
    "DisplayMetadata",
    "DynamicSourceMessage",
    "EOSMessage",
    "Feeder",
    "FrameMetadata",
    "LabelInfo",
    "Node",
    "Object",
    "ObjectMetadata",
    "PipelineMessage",
    "PipelineState",
    "Probe",
    "Receiver",
    "StateTransitionMessage",
    "Tensor",
    "UserMetadata",
    "as_tensor",
]
