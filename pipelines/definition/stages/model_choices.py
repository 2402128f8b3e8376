"""What may be chosen of a model, from where it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from elements.inference.decoders import LAYOUTS
from elements.inference.letterbox import LetterboxMode
from elements.inference.preprocess import ColorOrder, ValueRange
from elements.inference.tasks import Task

if TYPE_CHECKING:
    Layout = str
else:
    Layout = Literal[("auto", *LAYOUTS)]

ModelTask = Literal["auto", Task]
Letterbox = Literal["auto", LetterboxMode]
Color = Literal["auto", ColorOrder]
Scale = Literal["auto", ValueRange]
