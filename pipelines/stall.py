"""Where a pipeline that stands still does so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from elements.base import Gst, all_of
from pipelines.closing import busy_operators, threads_in_python
from pipelines.graph import Graph, Node

INFERENCE = "pyinfer"


def holders(gst: Gst.Bin, graph: Graph, behind: str) -> list[Node]:
    """The nodes behind ``behind`` that took a buffer and do not give it back, furthest downstream only.

    While an element works on a buffer, its sink pad's stream lock is held. All elements before the one that blocks hold
    theirs too, as far up as the next queue that has room; so the culprit is the one with nobody busy after it.
    """
    later = set(_behind(graph, behind))
    busy = {name for name in later if _is_busy(gst.get_by_name(name))}
    return [graph.nodes[name] for name in graph.nodes if name in busy and not busy.intersection(graph.successors(name))]


def hanging_code(
    gst: Gst.Bin, graph: Graph, behind: str, operators: Iterable[Any], still_s: float, limit_s: float
) -> str:
    """Which code of the user has held the stream for ``limit_s``, so that it may never return; empty if none has.

    A model that is being loaded is such code.

    Args:
        gst: the pipeline.
        graph: of the pipeline.
        behind: node after which elements are looked at.
        operators: those of the pipeline.
        still_s: seconds since a frame came through.
        limit_s: seconds.
    """
    busy = next((operator.busy for operator in operators if getattr(operator, "busy_s", 0.0) >= limit_s), "")
    if busy or still_s < limit_s:
        return str(busy)
    starting = between_states(gst, graph, behind)
    if starting:
        return starting
    model = next((node for node in holders(gst, graph, behind) if node.factory == INFERENCE), None)
    return "" if model is None else f"the model of '{model.name}' has been at a batch for {still_s:.0f} s"


def between_states(gst: Gst.Bin, graph: Graph, behind: str) -> str:
    """Which element behind ``behind`` has begun to start or to stop and is still at it; empty if none is.

    Loading a model is a part of it. Sinks are left out: their start ends with the first buffer.
    """
    for name in dict.fromkeys(_behind(graph, behind)):
        element = gst.get_by_name(name)
        now, then = element.current_state, element.pending_state
        if graph.successors(name) and then != Gst.State.VOID_PENDING:
            return f"'{name}' ({graph.nodes[name].factory}) is still {'starting' if now < then else 'stopping'}"
    return ""


def held_at_the_end(gst: Gst.Bin, graph: Graph, behind: str, operators: Iterable[Any], hanging: str) -> tuple[str, str]:
    """What keeps a pipeline from stopping, and, unless that is code of the user, where all threads are.

    ``hanging`` is what `hanging_code` found before; for the others see there.
    """
    own_code = busy_operators(operators).removeprefix("; ") or hanging or between_states(gst, graph, behind)
    return (own_code, "") if own_code else (_still_stopping(gst), threads_in_python())


def describe_stall(gst: Gst.Bin, graph: Graph, behind: str) -> str:
    """Which element holds the last buffer and what waits before it; or that nothing is on its way."""
    parts = [_held(gst, graph, node) for node in holders(gst, graph, behind)]
    parts = parts or [f"no buffer is on its way behind '{behind}': nothing comes from the sources"]
    slow = [_state_of(name, element) for name in graph.nodes if not _plays(element := gst.get_by_name(name))]
    if slow:
        parts.append(f"not playing: {', '.join(slow)}")
    return "; ".join(parts)


def _still_stopping(gst: Gst.Bin) -> str:
    """Which elements, of bins their innermost, have begun to stop and are still at it; else, which have not begun."""
    left = [element for element in all_of(gst.iterate_recurse()) if element.current_state != Gst.State.NULL]
    stopping = [element for element in left if element.pending_state != Gst.State.VOID_PENDING]
    around = [element.get_parent() for element in stopping]
    inner = [element for element in stopping if element not in around]
    if inner:
        return f"still stopping: {', '.join(_place(element, gst) for element in inner)}"
    if left:
        return f"not yet stopping: {_quoted(element.get_name() for element in left if element.get_parent() is gst)}"
    return "all elements have stopped, but what made them has not returned"


def _place(element: Gst.Element, gst: Gst.Bin) -> str:
    factory, outer = element.get_factory(), element.get_parent()
    text = f"'{element.get_name()}' ({factory.get_name() if factory else type(element).__name__})"
    return text if outer in (gst, None) else f"{text} in {_place(outer, gst)}"  # None: a bin has just let go of it


def _behind(graph: Graph, start: str) -> Iterator[str]:
    for name in graph.successors(start):
        yield name
        yield from _behind(graph, name)


def _is_busy(element: Gst.Element) -> bool:
    for pad in all_of(element.iterate_sink_pads()):
        lock = pad.stream_rec_lock
        if not lock.trylock():
            return True
        lock.unlock()
    return False


def _held(gst: Gst.Bin, graph: Graph, node: Node) -> str:
    before = [link.source for link in graph.links if link.target == node.name]
    text = f"buffers last passed {_quoted(before)} and are held by '{node.name}' ({node.factory})"
    waiting = [
        f"'{name}' ({level})"
        for name in graph.nodes
        if graph.nodes[name].factory == "queue"
        and (level := gst.get_by_name(name).get_property("current-level-buffers"))
    ]
    return f"{text}; waiting in queues: {', '.join(waiting)}" if waiting else text


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _plays(element: Gst.Element) -> bool:
    return bool(element.current_state == Gst.State.PLAYING)


def _state_of(name: str, element: Gst.Element) -> str:
    now, then = element.current_state.value_nick, element.pending_state.value_nick
    return f"'{name}' ({now})" if then == "void-pending" else f"'{name}' ({now}, on its way to {then})"
