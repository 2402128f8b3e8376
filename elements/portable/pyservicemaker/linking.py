"""Which pads a link of two elements takes: pyservicemaker's rules, by pad templates and their presence."""

from __future__ import annotations

import logging

from elements.base import Gst

log = logging.getLogger("gstorch.pyservicemaker")

_ALWAYS, _SOMETIMES, _REQUEST = Gst.PadPresence.ALWAYS, Gst.PadPresence.SOMETIMES, Gst.PadPresence.REQUEST
_MAX_INDEX = 1024


def link(source: Gst.Element, target: Gst.Element, hints: tuple[str, str] = ("", "")) -> None:
    """Link two elements.

    The first pair of a src and a sink template whose caps intersect decides. A hint restricts the templates: the
    template's name or an instance of it (``sink_3`` of ``sink_%u``, which is then the pad that is requested; without
    one the element numbers its pads, so by the order of the calls). Pads that appear later are linked when they do,
    to a sink pad that is taken now.

    Raises:
        RuntimeError: "Elements linking  failed" if no pair matches, "Element creation failed" if a pad cannot be had,
            "Element linking failed" if the pads refuse each other.
    """
    src_template, sink_template = _matching_templates(source, target, hints)
    src, sink = src_template.presence, sink_template.presence
    if sink == _SOMETIMES:
        log.warning("%s -> %s: the sink pad appears later, nothing is linked", source.get_name(), target.get_name())
    elif src == _SOMETIMES:
        source.connect("pad-added", _link_new_pad, _take_pad(target, sink_template, hints[1]))
    elif src == _ALWAYS and sink == _ALWAYS:
        if not Gst.Element.link(source, target):
            raise _refusal("Element linking failed", source, target)
    else:
        src_pad = _take_pad(source, src_template, hints[0])
        sink_pad = _take_pad(target, sink_template, hints[1])
        if src_pad.link_full(sink_pad, Gst.PadLinkCheck.DEFAULT) != Gst.PadLinkReturn.OK:
            raise _refusal("Element linking failed", source, target)


def _matching_templates(
    source: Gst.Element, target: Gst.Element, hints: tuple[str, str]
) -> tuple[Gst.PadTemplate, Gst.PadTemplate]:
    sinks = _templates(target, Gst.PadDirection.SINK, hints[1])
    for src in _templates(source, Gst.PadDirection.SRC, hints[0]):
        for sink in sinks:
            if src.get_caps().can_intersect(sink.get_caps()):
                return src, sink
    raise _refusal("Elements linking  failed", source, target)


def _templates(element: Gst.Element, direction: Gst.PadDirection, hint: str) -> list[Gst.PadTemplate]:
    templates = element.get_pad_template_list()
    return [t for t in templates if t.direction == direction and (not hint or _names(hint, t.name_template))]


def _names(hint: str, template: str) -> bool:
    """Whether the hint is the template's name or that of a pad made from it."""
    prefix, percent, rest = template.partition("%")
    if hint == template or not percent:
        return hint == template
    return len(hint) > len(prefix) and hint.startswith(prefix) and hint.endswith(rest[1:])


def _take_pad(element: Gst.Element, template: Gst.PadTemplate, hint: str) -> Gst.Pad:
    """The static pad of an ALWAYS template, a new pad of a REQUEST template."""
    name = template.name_template
    pad = element.get_static_pad(name) if template.presence == _ALWAYS else _request_pad(element, name, hint)
    if pad is None:
        log.error("%s has no pad '%s' to give", element.get_name(), hint or name)
        raise RuntimeError("Element creation failed")
    return pad


def _request_pad(element: Gst.Element, template: str, hint: str) -> Gst.Pad | None:
    pad = None
    if hint and hint != template and element.get_static_pad(hint) is None:
        pad = element.request_pad_simple(hint)
    if pad is None:
        if hint and hint != template:
            log.warning("%s does not give pad '%s': the next free one is taken", element.get_name(), hint)
        pad = element.request_pad_simple(template)
    index = 0
    while pad is None and "%" in template and index < _MAX_INDEX:
        name = template.replace("%u", str(index)).replace("%d", str(index))
        if element.get_static_pad(name) is None:
            pad = element.request_pad_simple(name)
        index += 1
    return pad


def _link_new_pad(element: Gst.Element, pad: Gst.Pad, sink: Gst.Pad) -> None:
    """``pad-added``: every new pad is tried, whatever the hint said; the caps decide."""
    if pad.can_link(sink) and pad.link_full(sink, Gst.PadLinkCheck.DEFAULT) != Gst.PadLinkReturn.OK:
        log.error("Failed to link %s.%s to %s", element.get_name(), pad.get_name(), sink.get_name())


def _refusal(text: str, source: Gst.Element, target: Gst.Element) -> RuntimeError:
    log.error("cannot link %s to %s: no pads that fit together", source.get_name(), target.get_name())
    return RuntimeError(text)
