"""What is said of an error of the bus."""

from __future__ import annotations

import pytest

from pipelines.bus import BusEvent
from pipelines.failure import describe
from pipelines.graph import Graph


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("infer: source 1, frame 4: no luck", "infer: source 'yard', frame 4: no luck"),
        ("infer: model 'm', source 0: classes: no", "infer: model 'm', source 'door': classes: no"),
        ("infer: source 7, frame 4: no luck", "infer: source 7, frame 4: no luck"),
    ],
)
def test_sources_are_called_by_name(text, told):
    assert describe(BusEvent("error", text=text), Graph("p"), ["door", "yard"]) == (told, "")
