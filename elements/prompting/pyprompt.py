"""pyprompt: asks a vision-language model about tracks or frames, and writes the answers into the metadata."""

from __future__ import annotations

import json
import logging
from typing import Any

from elements.api import pyservicemaker
from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    Gst,
    GstBase,
    Property,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    post_error,
    sink_and_src,
)
from elements.frames import FrameReader, refuse_rgba
from elements.held_buffer import HeldBuffer
from elements.portable.stream_events import ended_stream
from elements.prompting.answers import AnswerBook, Reader
from elements.prompting.asker import Asker, Counts
from elements.prompting.batch import BatchPrompts
from elements.prompting.client import ChatClient
from elements.prompting.options import PromptError, PromptOptions

log = logging.getLogger("gstorch.pyprompt")

FACTORY = "pyprompt"
COUNTERS = ("asked", "answered", "failed", "dropped", "over-budget")
_KEPT = Gst.FlowReturn.CUSTOM_SUCCESS  # GST_BASE_TRANSFORM_FLOW_DROPPED: not pushed by the base class
_NEXT_STREAM = (Gst.EventType.EOS, Gst.EventType.STREAM_START, Gst.EventType.CAPS, Gst.EventType.SEGMENT)
"""Events before which all must be pushed."""

PROPERTIES = (
    Property("endpoint", str, "", "Base URL of an OpenAI-compatible endpoint: http://localhost:8000/v1"),
    Property("model", str, "", "Model, as the endpoint calls it"),
    Property("text", str, "", "What is asked; {label}, {source} and {track_id} are filled in"),
    Property("api-key", str, "", "Sent as bearer token; cannot be read back", readable=False),
    Property(
        "options",
        str,
        "",
        'The other keys of the prompt stage, as JSON, times in seconds: {"per": "track", "trigger": {"classes": '
        '["person"], "min_age": 1, "zones": [[[0, 0], [1, 0], [1, 1]]], "events": ["entry"], "interval": 10}}',
    ),
    Property("params", str, "", 'Further keys of each request, as JSON: {"temperature": 0}'),
    Property("source-names", str, "", "Names of the sources by id, as a JSON list"),
    Property("asked", "uint64", 0, "Questions: answered + failed + dropped + under way", writable=False),
    Property("answered", "uint64", 0, "Questions that were answered", writable=False),
    Property("failed", "uint64", 0, "Questions without an answer after all attempts", writable=False),
    Property("dropped", "uint64", 0, "Questions for which there was no room, or no time at the end", writable=False),
    Property("over-budget", "uint64", 0, "Questions that had to wait for the budget", writable=False),
)


class PyPrompt(PropertyTable, GstBase.BaseTransform):
    """Pixels are read for few objects, only metadata is written, and nothing waits for answers.

    With ``finish`` in its options, the newest batch is kept until the next one comes. At the end of the stream it waits
    so many seconds for open answers and takes them along.
    """

    __gtype_name__ = "PyPrompt"
    __gstmetadata__ = (
        "Prompts of a vision-language model",
        "Filter/Video",
        "Asks about tracks or frames, beside the stream",
        AUTHOR,
    )
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}), format=(string){{ RGB, RGBA, NV12, I420 }}")
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_in_place(True)
        self._asker: Asker | None = None
        self._prompts: BatchPrompts | None = None
        self._kept: list[HeldBuffer | Gst.Event] = []

    def do_get_property(self, pspec: Any) -> Any:
        if pspec.name in COUNTERS and self._asker is not None:
            return getattr(self._asker.counts, pspec.name.replace("-", "_"))
        return PropertyTable.do_get_property(self, pspec)

    # --- life cycle ---------------------------------------------------------------------------------------------------

    @guarded(False)
    def do_start(self) -> bool:
        self.values.update(dict.fromkeys(COUNTERS, 0))
        api = pyservicemaker()
        try:
            options = self._options()
            params = _json(self.values["params"], "params", dict)
            client = ChatClient(options, self.values["api-key"], params)
            reader = Reader(options)
        except PromptError as error:
            raise ElementError(f"{self.get_name()}: {error}") from None
        names = _json(self.values["source-names"], "source-names", list)
        self._finish_s = options.finish
        self._reader = FrameReader(self, api, names)
        self._client = client
        self._asker = Asker(client, reader.read, options, self.get_name(), lambda text: post_error(self, text))
        self._prompts = BatchPrompts(options, self.get_name(), api, self._asker, AnswerBook())
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        asker, self._asker = self._asker, None
        prompts, self._prompts = self._prompts, None
        self._drop_kept()
        if asker is None or prompts is None:
            return True
        asker.stop()
        self._client.close()
        self._tell(asker.counts, prompts.left)
        return True

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        asker = self._asker
        if transition == Gst.StateChange.PAUSED_TO_READY and asker is not None:
            asker.abandon()
        return GstBase.BaseTransform.do_change_state(self, transition)

    def _options(self) -> PromptOptions:
        values = _json(self.values["options"], "options", dict)
        given = {name: self.values[name] for name in ("endpoint", "model", "text") if self.values[name]}
        return PromptOptions.from_mapping({**values, **given})

    def _tell(self, counts: Counts, left: int) -> None:
        self.values.update({name: getattr(counts, name.replace("-", "_")) for name in COUNTERS})
        if not counts.asked:
            log.info("%s: nothing was asked: the trigger never held", self.get_name())
        if left:
            log.warning("%s: %d answers came after the last frame of their source", self.get_name(), left)
        if counts.failed or counts.dropped:
            log.warning(
                "%s: of %d questions %d failed and %d were dropped",
                self.get_name(),
                counts.asked,
                counts.failed,
                counts.dropped,
            )

    # --- the streaming thread -----------------------------------------------------------------------------------------

    @guarded(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        refuse_rgba(incaps)
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        assert self._prompts is not None
        flow = self._push_kept()
        if flow != Gst.FlowReturn.OK:
            return flow
        self._prompts.ask(buffer, self._reader.frames_of(buffer))
        if not self._finish_s:
            self._prompts.write(buffer)
            return flow
        self._kept.append(HeldBuffer(buffer))
        return _KEPT

    @guarded(False)
    def do_sink_event(self, event: Gst.Event) -> bool:
        if event.type == Gst.EventType.FLUSH_STOP:
            self._drop_kept()
        elif self._kept:
            if event.type == Gst.EventType.EOS and self._asker is not None:
                self._asker.finish(self._finish_s)
            if event.type in _NEXT_STREAM:
                self._push_kept()
            elif Gst.EventType.get_flags(event.type) & Gst.EventTypeFlags.SERIALIZED:
                self._kept.append(event)  # such as the end of one source: it must not overtake the batch
                return True
        return self._pass_on(event)

    def _push_kept(self) -> Gst.FlowReturn:
        """Push what was kept, in order; the batch with what is known by now."""
        kept, self._kept = self._kept, []
        flow = Gst.FlowReturn.OK
        for item in kept:
            if isinstance(item, Gst.Event):
                self._pass_on(item)
                continue
            if self._prompts is not None:
                self._prompts.write(item.buffer)
            flow = item.push(self.srcpad)
        return flow

    def _pass_on(self, event: Gst.Event) -> bool:
        ended = ended_stream(event)
        if ended is not None and self._prompts is not None:
            source_id = self._reader.source_of_pad(ended)
            if source_id is not None:
                self._prompts.forget(source_id)
        return bool(GstBase.BaseTransform.do_sink_event(self, event))

    def _drop_kept(self) -> None:
        kept, self._kept = self._kept, []
        for item in kept:
            if isinstance(item, HeldBuffer):
                item.release()


def _json(text: str, name: str, kind: type) -> Any:
    """The value of a property that holds JSON; an empty one where it is not set.

    Raises:
        PromptError: if it is something else.
    """
    try:
        value = json.loads(text) if text else kind()
    except ValueError as error:
        raise PromptError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise PromptError(f"{name}: is no JSON {'object' if kind is dict else 'list'}")
    return value


def register() -> None:
    """Make the factory ``pyprompt`` known in this process. Harmless if it is known already."""
    if Gst.ElementFactory.find(FACTORY) is None:
        Gst.Element.register(None, FACTORY, Gst.Rank.NONE, PyPrompt)
