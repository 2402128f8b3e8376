"""A graph as text, Graphviz dot or Mermaid. Secrets are masked."""

from __future__ import annotations

from collections.abc import Collection

from pipelines.graph import Graph, Link, Node

MASK = "***"


def property_text(node: Node) -> str:
    """``key=value`` pairs of a node; secret values are masked."""
    return " ".join(f"{key}={MASK if key in node.secret else _value(value)}" for key, value in node.properties.items())


def as_text(graph: Graph, stand_ins: Collection[str]) -> str:
    """Nodes, links and operators, one per line.

    Args:
        graph: what to show.
        stand_ins: factories that are stand-ins on this machine; the others are real.
    """
    width = max(len(name) for name in graph.nodes)
    kind_width = max(len(node.factory) for node in graph.nodes.values())
    lines = [f"pipeline {graph.name}", "", "nodes"]
    for node in graph.nodes.values():
        kind = "stand-in" if node.factory in stand_ins else "real"
        properties = property_text(node)
        lines.append(f"  {node.name:<{width}}  {node.factory:<{kind_width}}  {kind:<8}  {properties}".rstrip())
    lines += ["", "links"]
    lines += [f"  {_end(link.source, link.source_pad)} -> {_end(link.target, link.target_pad)}{_caps(graph, link)}"
              for link in graph.links]  # fmt: skip
    if graph.attachments:
        lines += ["", "operators"]
        lines += [f"  {a.name} on {a.node}: {a.operator}" for a in graph.attachments]
    return "\n".join(lines)


def as_dot(graph: Graph, stand_ins: Collection[str]) -> str:
    """Graphviz; stand-ins are dashed."""
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=LR; node [shape=box, fontname=sans];"]
    for node in graph.nodes.values():
        style = ", style=dashed" if node.factory in stand_ins else ""
        label = _quoted(node.name + r"\n" + node.factory)
        lines.append(f"  {_quoted(node.name)} [label={label}{style}];")
    for link in graph.links:
        caps = _caps(graph, link).strip()
        label = f" [label={_quoted(caps)}]" if caps else ""
        lines.append(f"  {_quoted(link.source)} -> {_quoted(link.target)}{label};")
    return "\n".join([*lines, "}"])


def as_mermaid(graph: Graph, stand_ins: Collection[str]) -> str:
    """A Mermaid flowchart; stand-ins have a dashed border."""
    ids = {name: f"n{index}" for index, name in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes.values():
        label = f"{node.name}<br/>{node.factory}".replace('"', "#quot;")
        lines.append(f'  {ids[node.name]}["{label}"]{":::standin" if node.factory in stand_ins else ""}')
    lines += [f"  {ids[link.source]} --> {ids[link.target]}" for link in graph.links]
    lines.append("  classDef standin stroke-dasharray: 4 3")
    return "\n".join(lines)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return f'"{text}"' if not text or " " in text else text


def _end(node: str, pad: str) -> str:
    return f"{node}.{pad}" if pad else node


def _caps(graph: Graph, link: Link) -> str:
    node = graph.nodes[link.source]
    return f"  [{node.properties['caps']}]" if node.factory == "capsfilter" else ""


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
