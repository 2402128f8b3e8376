"""The models of a stage at work on a stream of batches: several on their way, what happens on failure, and counts."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elements.inference.answer import ask
from elements.inference.config import ModelConfig
from elements.inference.crops import newest_sizes, source_ids_of, taken
from elements.inference.errors import InferenceError, ModelError, culprit_of, failure_text
from elements.inference.frame import Frame
from elements.inference.result import GroupResult, Result
from elements.inference.source_options import SourceOptions
from elements.inference.swap.loader import Answer
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.served import ANY_ERROR, ServedModel
from elements.inference.swap.slots import Group
from elements.inference.swap.status import SwapStatus
from elements.inference.swap.swap import Swapper
from elements.inference.swap.warm_up import check_classes, check_task, task_of, warm_up
from elements.metadata.batch_detections import counts_of
from elements.metadata.detections import Detections

log = logging.getLogger("gstorch.inference")

Report = Callable[[str, BaseException], None]
"""Called with a text for the user and the exception behind it."""


@dataclass(slots=True)
class _Work:
    """Frames of a batch that one model has. It keeps the model, so that another one may take its place meanwhile.

    Attributes:
        group: the model; held.
        frames: the frames, in order.
        places: their places among all that were submitted.
        started: when the model got them, seconds.
        handle: what the model's ``submit`` gave; ``None`` if it has none and runs when it is collected.
        failure: what it raised.
    """

    group: Group
    frames: Sequence[Frame]
    places: Sequence[int]
    started: float
    handle: Any = None
    failure: BaseException | None = None


@dataclass(slots=True)
class Pending:
    """A batch on its way; ends with `Session.collect` or `Session.discard`."""

    works: list[_Work]


class Session:
    """Runs the frames of a stream through the models of a stage, which may be exchanged meanwhile.

    `submit` and `collect` may be called from two threads, each in the same order. A model that works on the CPU runs in
    `collect`. All other methods may be called from any thread.

    >>> session = Session(ModelConfig("yolox_nano_416.onnx"))
    >>> session.open()
    >>> for result in session.collect(session.submit(frames)): ...

    Args:
        config: the stage's model and its options.
        on_error: when the model fails on a frame: ``stop`` makes `collect` raise, ``skip`` leaves it out and counts it.
        report: is told of the first frame that is skipped.
        swap: how a new model proves itself.
        sources: what sources have otherwise, by source id.
        notify: gets every step of every swap; must not wait for another thread.

    Attributes:
        frames_inferred: frames that a model could do.
        failed_by_source: frames that were skipped, by source id.
        nan_count: rows of output that were left out as they are not finite numbers.
    """

    def __init__(
        self,
        config: ModelConfig,
        on_error: str = "stop",
        report: Report | None = None,
        swap: SwapOptions | None = None,
        sources: Mapping[int, SourceOptions] | None = None,
        notify: Callable[[SwapStatus], None] = lambda status: None,
    ) -> None:
        self.frames_inferred = 0
        self.failed_by_source: Counter[int] = Counter()
        self.nan_count = 0
        self._config, self._on_error, self._report = config, on_error, report
        self._thresholds = {"confidence": config.confidence, "iou": config.iou}
        self._sources = dict(sources or {})
        self._sizes: dict[int, tuple[int, int]] = {}  # (width, height) of each source's newest frame
        self._swapper = Swapper(swap or SwapOptions(), self._prepare, notify)

    # --- life cycle ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Load the stage's model and those of sources.

        Raises:
            ModelError: if one cannot be used; with the cause where the model's own code failed.
        """
        try:
            self._swapper.open(self._config)
            for source_id, options in self._sources.items():
                if options.model:
                    served = self._swapper.open(self._config_for(options.model), source_id)
                    check_task(served, self.task, "models of one stage do the same", source_id)
            self._check_sources(self._sources)
        except ModelError:
            self.close()
            raise
        self._set_thresholds()

    def close(self) -> None:
        """Close the models. What they raise is logged."""
        self._swapper.close()

    @property
    def overlaps(self) -> bool:
        """Whether a model returns from ``submit`` while it still works, so that the next batch can be made ready."""
        return any(getattr(served.model, "overlaps", False) for served in self._swapper.in_force())

    @property
    def names(self) -> Sequence[str]:
        """Class names of the stage's model in force, by number."""
        return self._swapper.active().names

    @property
    def all_names(self) -> tuple[str, ...]:
        """Class names of all models in force, those of single sources included."""
        return tuple(dict.fromkeys(name for served in self._swapper.in_force() for name in served.names))

    @property
    def task(self) -> str:
        """What the stage's model in force does; see `elements.inference.tasks`."""
        return task_of(self._swapper.active())

    def forget(self, source_id: int) -> None:
        """Drop what the models keep of a source, which has ended."""
        self._sizes.pop(source_id, None)
        for served in self._swapper.in_force():
            if hasattr(served.model, "forget"):
                served.model.forget(source_id)

    @property
    def versions(self) -> dict[int | None, str]:
        """Version of the stage's model (``None``) and of sources that have their own."""
        return self._swapper.versions()

    # --- changes ------------------------------------------------------------------------------------------------------

    def set_threshold(self, name: str, value: float) -> None:
        """Change ``confidence`` or ``iou`` for the frames submitted from now on."""
        self._thresholds[name] = value
        self._set_thresholds()

    def set_swap_options(self, options: SwapOptions) -> None:
        """How new models prove themselves from now on."""
        self._swapper.options = options

    def watch(self, on: bool) -> None:
        """Whether a model whose file changes is loaded again; see `elements.inference.swap.watch`."""
        self._swapper.watch(on)

    def swap(self, config: ModelConfig) -> Answer:
        """Load another model for the stage in the background; it takes over between two batches.

        Sources with a model of their own get it with the new options, too.
        """
        self._config = config
        for source_id, options in self._sources.items():
            if options.model:
                self._swapper.request(self._config_for(options.model), source_id)
        return self._swapper.request(config)

    def refresh(self, fresh: Collection[int] = ()) -> None:
        """Load models again whose files have new content. See `Swapper.refresh`."""
        self._swapper.refresh(fresh)

    @property
    def sources(self) -> Mapping[int, SourceOptions]:
        """What sources have otherwise, by source id."""
        return self._sources

    def set_sources(self, sources: Mapping[int, SourceOptions]) -> dict[int, Answer]:
        """Change what sources have otherwise, from their next frame on; models are loaded in the background.

        Returns:
            The answers for sources that get another model.

        Raises:
            ModelError: if a class is none of the model's; nothing is changed then.
        """
        self._check_sources(sources)
        before, self._sources = self._sources, dict(sources)
        self._set_thresholds()
        answers = {}
        for source_id in before.keys() | sources.keys():
            old, new = (one.get(source_id, SourceOptions()).model for one in (before, sources))
            if new and new != old:
                answers[source_id] = self._swapper.request(self._config_for(new), source_id)
            elif old and not new:
                self._swapper.withdraw(source_id)
        return answers

    def source(self, source_id: int) -> SourceOptions:
        """What a source has otherwise."""
        return self._sources.get(source_id, _AS_THE_STAGE)

    def _config_for(self, path: str) -> ModelConfig:
        return replace(self._config, path=path)

    def _check_sources(self, sources: Mapping[int, SourceOptions]) -> None:
        """Against the models in force; one that is on its way is checked when it is loaded."""
        for source_id, options in sources.items():
            served = self._swapper.active(source_id)
            if served.config.path == (options.model or self._config.path):
                check_classes(served, {source_id: options})

    def _prepare(self, served: ServedModel, source_id: int | None) -> None:
        """Make a new model fit for the frames that come. See `Swapper`."""
        if source_id is not None:
            check_classes(served, {source_id: self.source(source_id)})
        else:
            check_classes(served, {i: options for i, options in self._sources.items() if not options.model})
        check_task(served, self.task, "its results are written in another way, which needs a restart")
        self._set_thresholds_of(served)
        warm_up(served, self._sizes if source_id is None else {i: s for i, s in self._sizes.items() if i == source_id})

    def _set_thresholds(self) -> None:
        for served in self._swapper.in_force():
            self._set_thresholds_of(served)

    def _set_thresholds_of(self, served: ServedModel) -> None:
        """The model gets the lowest confidence of any source; `SourceOptions.pick` sees to the others.

        That gives what a threshold in the model would give: suppression keeps a box whatever lies below its score.
        """
        own = [options.confidence for options in self._sources.values() if options.confidence is not None]
        lowest = min([self._thresholds["confidence"], *own])
        for name, value in (("confidence", lowest), ("iou", self._thresholds["iou"])):
            if getattr(served.model, name, getattr(served.config, name)) != value:
                setattr(served.model, name, value)

    # --- frames -------------------------------------------------------------------------------------------------------

    def submit(self, frames: Sequence[Frame]) -> Pending:
        """Give frames to their models. They must stay valid until they are collected. Never raises for a model."""
        self._sizes.update(newest_sizes(frames))
        works = self._assign(frames, range(len(frames)))
        for work in works:
            if getattr(work.group.served.model, "overlaps", False):
                try:
                    work.handle = work.group.served.model.submit(work.frames)  # type: ignore[attr-defined]
                except ANY_ERROR as error:
                    work.failure = error
        return Pending(works)

    def collect(self, pending: Pending) -> list[Result]:
        """`collect_groups`, frame by frame."""
        return [result for group in self.collect_groups(pending) for result in group.each()]

    def collect_groups(self, pending: Pending) -> list[GroupResult]:
        """The frames that could be done, and what was found, by model; waits for it.

        A model that fails, or gives something that is no finite number, while the one before it is still kept, is taken
        back, and the frames are done by the old one.

        Raises:
            InferenceError: if it fails for good and ``on_error`` is ``stop``.
        """
        done: list[GroupResult] = []
        try:
            while pending.works:
                work = pending.works[0]
                done += self._collect(work)
                self._swapper.release(pending.works.pop(0).group)
        finally:
            self.discard(pending)
        return done

    def discard(self, pending: Pending) -> None:
        """Let go of a batch that will not be collected."""
        while pending.works:
            self._swapper.release(pending.works.pop().group)

    def _assign(self, frames: Sequence[Frame], places: Sequence[int]) -> list[_Work]:
        """Who does ``frames``, which are at ``places`` among those that were submitted."""
        now = time.monotonic()
        groups = self._swapper.route(source_ids_of(frames))
        return [
            _Work(group, taken(frames, group.places), [places[own] for own in group.places], now) for group in groups
        ]

    def _collect(self, work: _Work) -> list[GroupResult]:
        found, broken = self._answer(work)
        if work.failure is None and not broken:
            return self._finish(work, found)
        reason = f"{broken} rows of its output are not finite numbers"
        if work.failure is not None:
            reason = failure_text(work.frames, work.failure)
        self._swapper.failed(work.group.served, reason)
        again = Pending(self._assign(work.frames, work.places))
        if any(other.group.served is work.group.served for other in again.works):  # there is no way back
            self.discard(again)
            return self._finish(work, found) if work.failure is None else self._give_up(work)
        self.nan_count -= broken  # the model is gone, and its answer with it
        return self.collect_groups(again)

    def _answer(self, work: _Work) -> tuple[Sequence[Detections], int]:
        """What the model found, and how many rows were broken; if it failed, ``work.failure`` is set."""
        if work.failure is not None:
            return [], 0
        try:
            found, broken = ask(work.group.served.model, work.frames, str(work.group.served.config.path), work.handle)
        except ANY_ERROR as error:
            work.failure = error
            return [], 0
        if broken and not self.nan_count and not hasattr(work.group.served.model, "stats"):  # else it says so itself
            log.warning(
                "model '%s' gives boxes, scores or angles that are not finite numbers (%d in this batch): they are "
                "left out and counted; this is said once",
                work.group.served.config.path,
                broken,
            )
        self.nan_count += broken
        return found, broken

    def _finish(self, work: _Work, found: Sequence[Detections]) -> list[GroupResult]:
        served, frames = work.group.served, work.frames
        ids = source_ids_of(frames)
        self.frames_inferred += len(frames)
        self._swapper.went_well(served, ids, counts_of(found), time.monotonic() - work.started)
        self._try_new(frames, ids, found)
        if self._sources:
            found = [self._pick(frame, one, served) for frame, one in zip(frames, found, strict=True)]
        return [GroupResult(frames, work.places, found, served.names, served.version)]

    def _pick(self, frame: Frame, found: Detections, served: ServedModel) -> Detections:
        options = self.source(frame.source_id)
        return options.pick(found, served.names, (frame.width, frame.height), self._thresholds["confidence"])

    def _try_new(self, frames: Sequence[Frame], ids: Sequence[int], found: Sequence[Detections]) -> None:
        """Give the frames to a new model on its shadow run, if there is one."""
        for group in self._swapper.trials(ids):
            try:
                new, broken = ask(group.served.model, taken(frames, group.places), str(group.served.config.path))
            except ANY_ERROR as error:
                self._swapper.failed_trial(group.served, f"{type(error).__name__}: {error}")
            else:
                if broken:
                    self._swapper.failed_trial(group.served, f"{broken} rows of its output are not finite numbers")
                else:
                    pairs = zip((found[place] for place in group.places), new, strict=True)
                    self._swapper.compare(group.served, list(pairs))
            finally:
                self._swapper.release(group)

    def _give_up(self, work: _Work) -> list[GroupResult]:
        """What to do about frames that no model can do: see ``on_error``."""
        frames, failure = work.frames, work.failure
        assert failure is not None
        if self._on_error == "stop":
            raise InferenceError(failure_text(frames, failure)) from culprit_of(failure)
        if len(frames) > 1:  # find out which ones fail, so that only those are lost
            singles = [(taken(frames, [own]), [place]) for own, place in enumerate(work.places)]
            return [done for single in singles for done in self.collect_groups(Pending(self._assign(*single)))]
        if not self.failed_by_source and self._report is not None:
            text = f"{failure_text(frames, failure)}: this frame is skipped, as others will be"
            self._report(text, culprit_of(failure))
        self.failed_by_source[frames[0].source_id] += 1
        return []


_AS_THE_STAGE = SourceOptions()
