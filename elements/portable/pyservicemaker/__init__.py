"""NVIDIA's pyservicemaker (Pipeline API) over plain GStreamer and `elements.portable.meta`.

The names, accepted types, exceptions and rules are NVIDIA's, so that operators written for DeepStream run unchanged on
a machine without it. What crashes or aborts there raises here; where behaviour differs the docstrings say so. Not
here: Flow, SourceConfig, RecordConfig, CommonFactory, ``utils``, ``signal``, RTSP server, recording, YAML pipelines,
audio, preprocess and event message metadata.
"""

from elements.portable.pyservicemaker import osd
from elements.portable.pyservicemaker.appdata import Feeder, Receiver
from elements.portable.pyservicemaker.buffer import Buffer
from elements.portable.pyservicemaker.messages import (
    DynamicSourceMessage,
    EOSMessage,
    PipelineState,
    StateTransitionMessage,
)
from elements.portable.pyservicemaker.operators import (
    BatchMetadataOperator,
    BufferObserver,
    BufferOperator,
    BufferProvider,
    BufferRetriever,
)
from elements.portable.pyservicemaker.pipeline import Pipeline
from elements.portable.pyservicemaker.probes import Probe, probe, register_probe
from elements.portable.pyservicemaker.tensor import ColorFormat, as_tensor

__version__ = "0.0.1"  # of the API that this follows

__all__ = [
    "BatchMetadataOperator",
    "Buffer",
    "BufferObserver",
    "BufferOperator",
    "BufferProvider",
    "BufferRetriever",
    "ColorFormat",
    "DynamicSourceMessage",
    "EOSMessage",
    "Feeder",
    "Pipeline",
    "PipelineState",
    "Probe",
    "Receiver",
    "StateTransitionMessage",
    "as_tensor",
    "osd",
    "probe",
    "register_probe",
]
