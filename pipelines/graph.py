"""A pipeline as plain data: nodes, links and attachments. No GStreamer here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PropertyValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Node:
    """One GStreamer element. ``origin`` names the key of the definition that asked for it (for error messages)."""

    name: str
    factory: str
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)
    secret: frozenset[str] = frozenset()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """Data flows from ``source`` to ``target`` (node names). Empty pad names let the pad templates decide."""

    source: str
    target: str
    source_pad: str = ""
    target_pad: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A metadata operator on a node's src pad: import path ``package.module:Class`` and constructor arguments.

    ``origin`` names the key of the definition that asked for it (for error messages).
    """

    node: str
    name: str
    operator: str
    params: Mapping[str, Any] = field(default_factory=dict)
    pad: str = ""
    origin: str = ""


@dataclass(slots=True)
class Graph:
    """Nodes by name in the order they were added, links, and attachments."""

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)

    def add(self, node: Node) -> Node:
        """Add a node.

        Raises:
            ValueError: if the name is taken (pyservicemaker would drop the second element in silence).
        """
        if node.name in self.nodes:
            raise ValueError(f"two nodes are named '{node.name}'")
        self.nodes[node.name] = node
        return node

    def link(self, source: str, target: str, source_pad: str = "", target_pad: str = "") -> None:
        """Link two nodes that are already there.

        Raises:
            KeyError: if one of them is not.
        """
        for name in (source, target):
            if name not in self.nodes:
                raise KeyError(f"link {source} -> {target}: no node '{name}'")
        self.links.append(Link(source, target, source_pad, target_pad))

    def attach(self, attachment: Attachment) -> None:
        """Attach an operator to a node that is already there.

        Raises:
            KeyError: if it is not.
        """
        if attachment.node not in self.nodes:
            raise KeyError(f"operator {attachment.name}: no node '{attachment.node}'")
        self.attachments.append(attachment)

    def successors(self, name: str) -> Iterator[str]:
        """Names of the nodes that ``name`` links to."""
        return (link.target for link in self.links if link.source == name)
