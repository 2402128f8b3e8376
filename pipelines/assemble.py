"""Graph to pyservicemaker.Pipeline."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from elements.base import ElementError, Gst
from pipelines.graph import Attachment, Graph, Node
from pipelines.own_elements import register_own
from pipelines.properties import Where, report_unset, set_wide, split_wide
from pipelines.runtime import Runtime


class AssemblyError(RuntimeError):
    """An element or link of the graph cannot be made on this machine."""


@dataclass(slots=True)
class Assembly:
    """A pipeline that is ready to start, with the operator instances by attachment name.

    ``pipeline`` is pyservicemaker's, ``gst`` the GStreamer pipeline behind it; both ``None`` where nothing is to run.
    ``where`` says what to call a place in the definition, for messages.
    """

    pipeline: Any
    gst: Any
    graph: Graph
    operators: dict[str, Any] = field(default_factory=dict)
    where: Where = str


def assemble(
    graph: Graph, runtime: Runtime, shared: dict[str, Any] | None = None, where: Where | None = None
) -> Assembly:
    """Make every node, link and attachment of the graph, and see whether every property took effect.

    Args:
        graph: what to build.
        runtime: from `load_runtime`.
        shared: objects handed to operators by parameter name, for parameters whose value in the graph is ``"@name"``.
        where: what to call the place in the definition that a node's ``origin`` names; default: the origin.

    Raises:
        AssemblyError: names the node or link, its origin in the definition, and the reason.
    """
    where = where or str
    pipeline = runtime.api.Pipeline(graph.name)
    wide = {}
    for node in graph.nodes.values():
        properties, wide[node.name] = split_wide(node.properties)
        try:
            register_own(node.factory)
            pipeline.add(node.factory, node.name, properties)
        except Exception as error:
            raise AssemblyError(f"{_who(node, where)}: {_why_not(node, error)}") from error
    for link in graph.links:
        try:
            pipeline.link((link.source, link.target), (link.source_pad, link.target_pad))
        except Exception as error:
            source, target = graph.nodes[link.source], graph.nodes[link.target]
            raise AssemblyError(f"cannot link {_who(source, where)} to {_who(target, where)}: {error}") from error
    assembly = Assembly(pipeline, gst_pipeline(pipeline, graph), graph, where=where)
    _see_to_properties(assembly, wide, where)
    for (node, pad), attachments in itertools.groupby(graph.attachments, lambda one: (one.node, one.pad)):
        own = {attachment.name: make_operator(attachment, shared or {}, where) for attachment in attachments}
        assembly.operators |= own
        pipeline.attach(node, runtime.api.Probe(", ".join(own), _together(list(own.values()))), tips=pad)
    return assembly


def _together(operators: list[Any]) -> Any:
    """One operator that stands for several on the same pad: each probe would be one more call into Python per batch."""
    from pipelines.operators.base import InTurn  # needs pyservicemaker, which is chosen when the program runs

    return operators[0] if len(operators) == 1 else InTurn(operators)


def _see_to_properties(assembly: Assembly, wide: Mapping[str, Mapping[str, int]], where: Where) -> None:
    for name, properties in wide.items():
        set_wide(assembly.gst.get_by_name(name), properties)
    refused = report_unset(assembly.gst, assembly.graph, where)
    if refused:
        raise AssemblyError("\n".join(refused))


def gst_pipeline(pipeline: Any, graph: Graph) -> Gst.Pipeline:
    """The GStreamer pipeline behind pyservicemaker's: its bus, states and pads are what the runner watches and ends.

    The portable one shows it. NVIDIA's does not; there an inference element of ours leads to it.

    Raises:
        AssemblyError: on NVIDIA's, if the graph has no such element.
    """
    if hasattr(pipeline, "gst_pipeline"):
        return pipeline.gst_pipeline
    from elements.pyinfer import FACTORY, top_level_of

    names = [node.name for node in graph.nodes.values() if node.factory == FACTORY]
    top = next((top for name in names if (top := top_level_of(name)) is not None), None)
    if top is None:
        raise AssemblyError(
            "NVIDIA's pyservicemaker does not show its GStreamer pipeline, and without an infer stage no element of "
            "ours leads to it, so errors could not be seen: add an infer stage, or set runtime.prefer to 'portable'"
        )
    return top


def make_operator(attachment: Attachment, shared: Mapping[str, Any], where: Where | None = None) -> Any:
    """The operator of an attachment. ``shared`` and ``where`` as for `assemble`.

    Raises:
        AssemblyError: if it cannot be made, with its place in the definition.
    """
    module, _, name = attachment.operator.partition(":")
    operator_class = getattr(importlib.import_module(module), name)
    params = {
        key: shared[value[1:]] if isinstance(value, str) and value.startswith("@") else value
        for key, value in attachment.params.items()
    }
    try:
        return operator_class(**params)
    except ElementError as error:
        place = (where or str)(attachment.origin) if attachment.origin else ""
        raise AssemblyError(f"{place} '{attachment.name}': {error}" if place else str(error)) from error.__cause__


def _who(node: Node, where: Where) -> str:
    return f"{where(node.origin) if node.origin else 'element'} '{node.name}' ({node.factory})"


def _why_not(node: Node, error: Exception) -> str:
    if "Element creation failed" in str(error):
        return f"no element '{node.factory}' on this machine (see `gstorch doctor`)"
    return str(error)
