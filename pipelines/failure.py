"""What went wrong, in words for people: bus messages know elements and source ids, people know files and names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.bus import BusEvent
from pipelines.graph import Graph
from pipelines.properties import Where

_OWN_OPTION = re.compile(r"\bsource (\d+): (model|classes)\b")  # what a source has otherwise, in an error of pyinfer
_SOURCE_ID = re.compile(r"\bsource (\d+)(?=, frame \d|: )")  # as pyinfer writes it


def describe(event: BusEvent, graph: Graph, sources: Sequence[str], where: Where | None = None) -> tuple[str, str]:
    """Text and trace of an error or warning.

    Args:
        event: with the names of the elements that it comes from.
        graph: of the pipeline; an element that writes a file is called by the file's path.
        sources: names of the sources by id.
        where: what to call a place in the definition; where it is given, errors about an option of a source name it.

    Returns:
        The text, with who says it; and the Python trace, empty where no Python code failed.
    """
    names = {str(number): f"source '{name}'" for number, name in enumerate(sources)}
    text = _SOURCE_ID.sub(lambda match: names.get(match[1], match[0]), event.text)
    if event.debug.startswith("Traceback"):
        trace = event.debug
    else:
        trace = ""
        text += _detail(event.debug)
    node = next((graph.nodes[name] for name in event.path if name in graph.nodes), None)
    own = _OWN_OPTION.search(event.text)
    if own is not None and node is not None and where is not None:
        text += f" ({where(f'sources.{own[1]}.infer.{node.name}.{own[2]}')})"
    if node is None or text.startswith(f"{node.name}: "):  # our own elements tell their names
        return text, trace
    location = node.properties.get("location")
    return f"'{location}': {text}" if location else f"{node.name}: {text}", trace


def _detail(debug: str) -> str:
    """What GStreamer's debug text adds to the message: its last line, below the place in the C source."""
    _place, separator, detail = debug.strip().rpartition(":\n")
    return f" ({detail.strip().removeprefix('system error: ')})" if separator else ""
