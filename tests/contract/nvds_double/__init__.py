"""A double of NVIDIA's pyservicemaker (metadata, osd, Buffer) on top of the real libnvds_meta.so.

It has the names, types, layouts and traps of the real module, as far as metadata goes; put it into ``sys.modules`` as
``pyservicemaker``. What crashes or corrupts memory in the real module raises `Crash` here. Nothing of it uses
`elements.metadata.nvds`, which is what it tests. One deviation: `Tensor` tells the truth about host memory.
"""

from tests.contract.nvds_double import osd
from tests.contract.nvds_double.buffer import Buffer, Tensor
from tests.contract.nvds_double.metadata import (
    BatchMetadata,
    ClassifierMetadata,
    DisplayMetadata,
    FrameMetadata,
    LabelInfo,
    ObjectMetadata,
    UserMetadata,
)

__all__ = [
    "BatchMetadata",
    "Buffer",
    "ClassifierMetadata",
    "DisplayMetadata",
    "FrameMetadata",
    "LabelInfo",
    "ObjectMetadata",
    "Tensor",
    "UserMetadata",
    "osd",
]
