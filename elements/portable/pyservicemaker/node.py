"""Node: a handle to one element of a pipeline."""

from __future__ import annotations

from typing import Any, Self

from elements.base import Gst
from elements.portable.pyservicemaker.linking import link
from elements.portable.pyservicemaker.probes import Object
from elements.portable.pyservicemaker.properties import get_property, set_properties


class Node:
    """An element. Pipelines make them; users don't."""

    def __init__(self, element: Gst.Element) -> None:
        self._element = element
        self._objects: dict[str, Object] = {}

    @property
    def name(self) -> str:
        """The element's name."""
        return str(self._element.get_name())

    def set(self, properties: dict[str, Any] | list[dict[str, Any]], /) -> Self:
        """Set properties (see `set_properties`); a list of dicts can name a property more than once.

        Raises:
            TypeError: if it is neither; there is no ``set(key, value)``.
            RuntimeError: for a value that is not str, int, bool or float.
        """
        groups = properties if isinstance(properties, list) else [properties]
        if not all(isinstance(group, dict) for group in groups):
            raise TypeError(f"Node.set(): incompatible function arguments: a dict or list of dicts, not {properties!r}")
        for group in groups:
            set_properties(self._element, group)
        return self

    def get(self, key: str, /) -> Any:
        """Value of a property, None if it cannot be read (see `get_property`)."""
        return get_property(self._element, key)

    def link(self, target: Node, hints: tuple[str, str] = ("", ""), /) -> Node:
        """Link to another node; the hints name a src and a sink pad or template (see `linking.link`).

        Raises:
            TypeError: if the hints are not two texts.
            RuntimeError: if the elements cannot be linked.
        """
        if len(hints) != 2 or not all(isinstance(hint, str) for hint in hints):
            raise TypeError(f"Node.link(): incompatible function arguments: two pad names, not {hints!r}")
        link(self._element, target._element, (hints[0], hints[1]))
        return target

    def attach(self, attached: Object, tips: str = "") -> Self:
        """Attach a probe (``tips``: a src pad's name, empty for the last one), a receiver or a feeder (signal names).

        Raises:
            TypeError: for anything else.
            RuntimeError: "Probe failure", "Signal connect failure" or "Custom Object duplicated".
        """
        if not isinstance(attached, Object):
            raise TypeError(f"Node.attach(): incompatible function arguments: {attached!r}")
        if attached.name in self._objects:
            raise RuntimeError("Custom Object duplicated")
        attached._attach(self._element, tips)
        self._objects[attached.name] = attached
        return self

    def find(self, name: str, /) -> Object | None:
        """What is attached under that name; nothing is found under an empty one."""
        return self._objects.get(name) if name else None

    def __repr__(self) -> str:
        return f"Node(name={self.name})"
