"""The catalogue of elements that GStreamer's registry knows in this process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from elements.base import GObject, Gst, enum_choices
from pipelines.definition.catalog import PropertyInfo, PropertyType, UnusableElementError
from pipelines.own_elements import OwnElementError, own_elements, register_own
from pipelines.runtime import register_elements

_TYPES: dict[str, PropertyType] = {
    "gchararray": "string",
    "gboolean": "bool",
    "gint": "int",
    "guint": "int",
    "glong": "int",
    "gulong": "int",
    "gint64": "int",
    "guint64": "int",
    "gfloat": "float",
    "gdouble": "float",
    "GEnum": "enum",
}


class GStreamerCatalog:
    """Elements of the GStreamer registry, with pyinfer and the stand-ins, which are registered, and the user's own.

    Properties come from the element's class, so no element (and no GPU) is opened to know them.
    """

    def __init__(self) -> None:
        register_elements()

    def factories(self) -> set[str]:
        """Names of all element factories."""
        known = {f.get_name() for f in Gst.Registry.get().get_feature_list(Gst.ElementFactory)}
        return known.union(own_elements())

    def properties(self, factory: str) -> Mapping[str, PropertyInfo] | None:
        """Properties by name; None when there is no such element or its plugin cannot be loaded.

        Raises:
            UnusableElementError: if it is the user's own, and its file cannot be used.
        """
        try:
            register_own(factory)
        except OwnElementError as error:
            raise UnusableElementError(str(error)) from error
        return _properties(factory)


@cache
def _properties(factory: str) -> Mapping[str, PropertyInfo] | None:
    feature = Gst.ElementFactory.find(factory)
    loaded = feature.load() if feature is not None else None
    if loaded is None:
        return None
    return {spec.name: _info(spec) for spec in GObject.list_properties(loaded.get_element_type())}


def _info(spec: GObject.ParamSpec) -> PropertyInfo:
    kind = _TYPES.get(spec.value_type.fundamental.name, "other")
    return PropertyInfo(
        type=kind,
        minimum=spec.minimum if kind in ("int", "float") else None,
        maximum=spec.maximum if kind in ("int", "float") else None,
        choices=enum_choices(spec.value_type) if kind == "enum" else None,
        writable=bool(spec.flags & GObject.ParamFlags.WRITABLE),
    )
