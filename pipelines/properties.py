"""Sees to it that elements have the properties that the graph gives them.

pyservicemaker raises nothing for an unknown property, an enum's nick, caps that cannot be parsed, or a value out of
range: it prints a line, and the element keeps what it had. It also carries no integer beyond 32 bits.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elements.base import GObject, Gst
from pipelines.graph import Graph, Node, PropertyValue
from pipelines.render import MASK

log = logging.getLogger("gstorch.runner")

_WHOLE = (GObject.TYPE_INT, GObject.TYPE_UINT, GObject.TYPE_INT64, GObject.TYPE_UINT64, GObject.TYPE_LONG,
          GObject.TYPE_ULONG)  # fmt: skip
_REAL = (GObject.TYPE_FLOAT, GObject.TYPE_DOUBLE)
_FLOAT32_PRECISION = 1e-6  # pyservicemaker hands numbers over as 32-bit floats

Where = Callable[[str], str]
"""What to call the place in the definition that a node's ``origin`` names."""


@dataclass(frozen=True, slots=True)
class Unset:
    """A property that is not as the graph has it. ``refused``: the element cannot have that value at all."""

    node: Node
    name: str
    problem: str
    refused: bool

    def text(self, where: Where) -> str:
        """One sentence for people."""
        return f"{where(self.node.origin)}: '{self.node.name}' ({self.node.factory}): {self.problem}"


def split_wide(properties: Mapping[str, PropertyValue]) -> tuple[dict[str, PropertyValue], dict[str, int]]:
    """What pyservicemaker carries, and the integers that it does not: they do not fit 32 bits."""
    wide = {name: v for name, v in properties.items() if type(v) is int and not -(1 << 31) <= v < 1 << 31}
    return {name: value for name, value in properties.items() if name not in wide}, wide


def set_wide(element: Gst.Element, properties: Mapping[str, int]) -> None:
    """Set integers of more than 32 bits, past pyservicemaker. What the element cannot take is left to `unset`."""
    for name, value in properties.items():
        spec = element.find_property(name)
        if spec is not None and spec.minimum <= value <= spec.maximum:
            element.set_property(name, value)


def unset(gst: Gst.Bin, graph: Graph) -> Iterator[Unset]:
    """Every property of the graph that did not take effect. ``gst`` holds the elements, named as the nodes."""
    for node in graph.nodes.values():
        element = gst.get_by_name(node.name)
        for name, wanted in node.properties.items():
            found = _check(element, name, wanted)
            if found is not None:
                yield Unset(node, name, _masked(found, name, wanted, node), found.refused)


@dataclass(frozen=True, slots=True)
class _Finding:
    """``has`` is what the element has, ``None`` where that says nothing."""

    why: str
    has: Any = None
    refused: bool = False


def _masked(found: _Finding, name: str, wanted: PropertyValue, node: Node) -> str:
    secret = name in node.secret
    text = f"property '{name}' should be {MASK if secret else repr(wanted)}, {found.why}"
    return text if found.has is None else f"{text} {MASK if secret else repr(found.has)}"


def _check(element: Gst.Element, name: str, wanted: PropertyValue) -> _Finding | None:
    owner, spec = _find(element, name)
    if spec is None:
        return _Finding("but the element has no such property (see gst-inspect-1.0)", refused=True)
    if not spec.flags & GObject.ParamFlags.WRITABLE:
        return _Finding("but it is read-only", refused=True)
    parsed, problem = _as_property(spec, wanted)
    if problem:
        return _Finding(problem, refused=True)
    if not spec.flags & GObject.ParamFlags.READABLE:
        return None
    has = owner.get_property(spec.name)
    if _same(spec, parsed, has):
        return None
    return _Finding("but after it was set it is", has.to_string() if isinstance(has, Gst.Caps) else _plain(has))


def _find(element: Gst.Element, name: str) -> tuple[Any, GObject.ParamSpec | None]:
    if "::" not in name:
        return element, element.find_property(name)
    if not isinstance(element, Gst.ChildProxy):
        return element, None
    _found, child, spec = Gst.ChildProxy.lookup(element, name)
    return child, spec


def _as_property(spec: GObject.ParamSpec, wanted: PropertyValue) -> tuple[Any, str]:
    """The value in the property's own type, or why there is none."""
    kind = GObject.type_fundamental(spec.value_type)
    if spec.value_type == Gst.Caps.__gtype__:
        caps = Gst.Caps.from_string(str(wanted))
        return caps, "" if caps is not None else "but that is no caps text"
    if kind in (GObject.TYPE_ENUM, GObject.TYPE_FLAGS) and isinstance(wanted, str):
        return None, "but pyservicemaker takes the number of a choice, not its name (see gst-inspect-1.0)"
    if kind in (*_WHOLE, *_REAL) and not isinstance(wanted, str) and not spec.minimum <= wanted <= spec.maximum:
        return None, f"but the element takes {spec.minimum} to {spec.maximum}"
    return wanted, ""


def _same(spec: GObject.ParamSpec, wanted: Any, has: Any) -> bool:
    kind = GObject.type_fundamental(spec.value_type)
    if isinstance(wanted, Gst.Caps):
        return has is not None and bool(has.is_equal(wanted))
    if kind in (GObject.TYPE_ENUM, GObject.TYPE_FLAGS, *_WHOLE):
        return int(has) == int(wanted)
    if kind in _REAL:
        return math.isclose(has, wanted, rel_tol=_FLOAT32_PRECISION, abs_tol=_FLOAT32_PRECISION)
    if kind == GObject.TYPE_BOOLEAN:
        return bool(has) == bool(wanted)
    if kind == GObject.TYPE_STRING:
        return (has or "") == str(wanted)
    return True  # boxed types and objects have no text to compare


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | bool | float) or value is None else int(value)


def report_unset(gst: Gst.Bin, graph: Graph, where: Where) -> list[str]:
    """Warn of properties that came out different; returns the sentences about those that an element cannot have."""
    refused = []
    for one in unset(gst, graph):
        if one.refused:
            refused.append(one.text(where))
        else:
            log.warning("%s", one.text(where))
    return refused
