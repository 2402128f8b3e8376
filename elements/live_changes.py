"""What of pyinfer may change while it runs: its properties, and the models behind them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from elements.base import Gst, post_warning
from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.session import Session
from elements.inference.source_options import SourceOptions, parse_source_options, source_options_text
from elements.inference.swap.loader import Answer
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.status import SwapState, SwapStatus
from elements.pyinfer_options import Options, resolve_options

log = logging.getLogger("gstorch.swap")

MESSAGE = "model-swap"
"""Name of the element message that tells each step of a swap."""


class LiveChanges:
    """The part of a running pyinfer that takes changes.

    Args:
        element: the element, for messages.
        values: its properties by name.
        user_set: names of those that the user set.
    """

    def __init__(self, element: Gst.Element, values: dict[str, Any], user_set: set[str]) -> None:
        self._element, self._values, self._user_set = element, values, user_set
        self._session: Session | None = None
        self._names: Sequence[str] = ()  # of the sources, by id
        self._versions: dict[int | None, str] = {}
        self._counts = dict.fromkeys(SwapState, 0)
        self._changes: Mapping[str, Callable[[Any], None]] = {
            "confidence-threshold": lambda value: self.set_threshold("confidence", value),
            "iou-threshold": lambda value: self.set_threshold("iou", value),
            "interval": self.set_interval,
            "reload": self.set_reload,
            "model-path": self._change_model,
            "model-engine": self._change_model,
            "source-options": self._change_sources,
            "swap-options": self._change_swap_options,
        }

    def begin(self, session: Session, options: Options) -> None:
        """The element runs with these from now on."""
        self._counts = dict.fromkeys(SwapState, 0)
        self._session, self._names = session, options.source_names
        self._values["source-options"] = source_options_text(session.sources)
        self._values.update({"swap-state": str(SwapState.ACTIVE), "swap-error": ""})
        self._values["model-version"] = session.versions[None]
        session.watch(options.reload == "watch")

    def end(self) -> None:
        """The element stops; `summary` still tells how it ended."""
        if self._session is not None:
            self._versions = self._session.versions
        self._session = None

    def property_changed(self, name: str, value: Any) -> None:
        """A property has a new value; what cannot be done is said and leaves all as it is."""
        if self._session is None:
            return
        if name not in self._changes:
            log.warning(
                "%s: %s takes effect at the next start, or with the next model-path", self._element.get_name(), name
            )
            return
        try:
            self._changes[name](value)
        except ModelError as error:
            self._values["swap-error"] = str(error)
            post_warning(self._element, f"{self._element.get_name()}: {name}: {error}; nothing is changed")

    # --- for programs -------------------------------------------------------------------------------------------------

    def set_threshold(self, name: str, value: float) -> None:
        """Change ``confidence`` or ``iou`` from the next batch on.

        Raises:
            ModelError: if it is not between 0 and 1; nothing is changed then.
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ModelError(f"{name}: {value} is not between 0 and 1")
        self._running.set_threshold(name, value)
        self._values[f"{name}-threshold"] = value

    def set_interval(self, value: int) -> None:
        """Change how many frames are skipped between two inferences of a source.

        Raises:
            ModelError: if it is not 0 or more.
        """
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ModelError(f"interval: {value} is not a whole number of 0 or more")
        self._values["interval"] = value  # which is read for every frame

    def set_reload(self, value: str) -> None:
        """Whether a model whose file changes is loaded again: ``watch`` or ``off``.

        Raises:
            ModelError: if it is neither.
        """
        if value not in ("off", "watch"):
            raise ModelError(f"reload: '{value}' is neither off nor watch")
        self._running.watch(value == "watch")
        self._values["reload"] = value

    def set_swap_options(self, options: Mapping[str, Any]) -> None:
        """How new models prove themselves from now on: keys of `SwapOptions`; what is not given is its default.

        Raises:
            ModelError: for an unknown key or a value out of range; nothing is changed then.
        """
        self._running.set_swap_options(SwapOptions.from_mapping(options))
        self._values["swap-options"] = json.dumps(dict(options))

    def swap(self, options: Mapping[str, Any]) -> Answer:
        """Load another model with these options of the stage; those that are not given stay as they are.

        Args:
            options: by name as in the definition: ``model``, ``labels``, ``layout`` …; ``None`` stands for the default.

        Raises:
            ModelError: if an option is unknown or out of range; nothing is changed then.
        """
        names = {name.replace("_", "-"): value for name, value in options.items()}
        if "model" in names:
            names["model-path"] = names.pop("model")
        if "pad" in names:
            names["pad-value"] = names.pop("pad")
        unknown = [name for name in names if name not in self._values]
        if unknown:
            raise ModelError(f"'{unknown[0]}' is no option of an infer stage")
        values, user_set = dict(self._values), set(self._user_set)
        for name, value in names.items():
            if value is not None and isinstance(values[name], str) and not isinstance(value, str):
                raise ModelError(f"{name}: {value!r} is not text")
            values[name] = value
            (user_set.discard if value is None else user_set.add)(name)
        answer = self._running.swap(self._config(values, user_set))
        self._values.update({name: value for name, value in names.items() if value is not None})
        self._user_set.clear()
        self._user_set.update(user_set)
        return answer

    def refresh(self, fresh: Collection[int] = ()) -> None:
        """Load models again whose files have new content. See `Swapper.refresh`."""
        self._running.refresh(fresh)

    def set_sources(self, sources: Mapping[int, SourceOptions]) -> dict[int, Answer]:
        """Change what sources have otherwise. See `Session.set_sources`."""
        answers = self._running.set_sources(sources)
        self._values["source-options"] = source_options_text(sources)
        return answers

    def summary(self, sources: Sequence[str]) -> dict[str, Any]:
        """The models in force and what became of swaps, as plain data.

        Args:
            sources: names by id.
        """
        versions = self._versions if self._session is None else self._session.versions
        return {
            "version": versions.get(None, ""),
            "sources": {sources[i]: version for i, version in sorted(versions.items(), key=str) if i is not None},
            "swaps": self._counts[SwapState.ACTIVE],
            "rejected": self._counts[SwapState.REJECTED],
            "rolled_back": self._counts[SwapState.ROLLED_BACK],
            "error": self._values["swap-error"] or None,
        }

    def source(self, source_id: int) -> SourceOptions:
        """What a source has otherwise."""
        return self._running.source(source_id)

    @property
    def sources(self) -> Mapping[int, SourceOptions]:
        """What sources have otherwise, by id."""
        return self._running.sources

    # --- changes ------------------------------------------------------------------------------------------------------

    @property
    def _running(self) -> Session:
        if self._session is None:
            raise ModelError("the stage does not run")
        return self._session

    def _change_model(self, path: str) -> None:
        self._user_set.discard("model-engine")
        self._user_set.add("model-path")
        self._values["model-path"] = path
        self._running.swap(self._config(self._values, self._user_set))

    def _config(self, values: Mapping[str, Any], user_set: set[str]) -> ModelConfig:
        return resolve_options(values, user_set).model

    def _change_sources(self, text: str) -> None:
        try:
            self._running.set_sources(parse_source_options(text))
        except ModelError:
            self._values["source-options"] = source_options_text(self._running.sources)
            raise

    def _change_swap_options(self, text: str) -> None:
        try:
            options = json.loads(text or "{}")
        except json.JSONDecodeError as error:
            raise ModelError(f"it is no JSON ({error}): {text}") from None
        self.set_swap_options(options)

    # --- what happens -------------------------------------------------------------------------------------------------

    def notify(self, status: SwapStatus) -> None:
        """A step of a swap: properties tell it, and the log and the bus."""
        if status.state is not SwapState.ACTIVE or not status.reason:  # else it was in force before
            self._counts[status.state] += 1
        if status.state is not SwapState.SUPERSEDED:
            self._values["swap-state"] = str(status.state)
        if status.failed or status.state is SwapState.ACTIVE:
            self._values["swap-error"] = status.reason if status.failed else ""
        if status.source_id is None:
            self._values["model-version"] = status.in_force
        structure = Gst.Structure.new_empty(MESSAGE)
        for name, value in (
            ("state", str(status.state)),
            ("model", status.model),
            ("version", status.version),
            ("in-force", status.in_force),
            ("reason", status.reason),
            ("source-id", -1 if status.source_id is None else status.source_id),
        ):
            structure.set_value(name, value)
        self._element.post_message(Gst.Message.new_element(self._element, structure))
        name = self._element.get_name()
        if status.failed:
            post_warning(self._element, f"{name}: {status}")  # the runner knows names and lines
        else:
            log.info("%s: %s", name, status.text(self._names))
