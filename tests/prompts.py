"""Options and pictures for tests of prompts."""

from __future__ import annotations

from typing import Any

from elements.prompting.options import PromptOptions
from elements.prompting.pictures import Picture


def options(trigger: Any = (), **values: Any) -> PromptOptions:
    given = {"endpoint": "http://vlm/v1", "model": "m", "text": "Who?", "timeout": 5, **values}
    return PromptOptions.from_mapping({**given, "trigger": dict(trigger)})


def a_picture(time_s: float = 0.0, score: float = 1.0) -> Picture:
    return Picture(b"jpeg", (10, 10), time_s, score)
