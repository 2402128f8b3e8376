"""Which model serves which source, and how another one takes over.

Three kinds of threads meet here: any that asks for a swap, the loader's, and the streaming threads. The latter ask at
the start of a batch who serves it (`Swapper.route`), and hold that model until its results are there. So the switch is
one assignment between two batches: nothing waits, and no batch sees two models or half of one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.swap.health import Health
from elements.inference.swap.loader import Answer, ModelLoader, SwapRequest
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.served import ANY_ERROR, ModelPool, ServedModel, load_served
from elements.inference.swap.shadow import Comparison
from elements.inference.swap.slots import Group, Slot, Trial
from elements.inference.swap.status import SwapState, SwapStatus
from elements.inference.swap.version import files_of, version_of
from elements.metadata.detections import Detections

log = logging.getLogger("gstorch.swap")

CLOSE_TIMEOUT_S = 5.0
LOADING_TIMEOUT_S = 2.0  # at the end; a model that is not even loaded has no results to wait for
STOPPING = "the stage stops"
IN_FORCE = "it is in force already"


class Swapper:
    """Serves the models of one stage. Every method may be called from any thread.

    Args:
        options: how a new model proves itself; may be exchanged at any time.
        prepare: gets a loaded model, and the source that it is for (``None``: the stage), before any frame comes, and
            warms it up; raises `ModelError` if it is unfit.
        notify: gets every step of every swap, with the lock held: it must not wait for another thread.
        load: makes a `ServedModel` of a config.
        version: tells the version of a config's present content.
        clock: seconds.
    """

    def __init__(
        self,
        options: SwapOptions,
        prepare: Callable[[ServedModel, int | None], None],
        notify: Callable[[SwapStatus], None],
        load: Callable[[ModelConfig], ServedModel] = load_served,
        version: Callable[[ModelConfig, Any], str] = version_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self._prepare, self._notify, self._clock = prepare, notify, clock
        self._load, self._version = load, version
        self._lock = threading.RLock()
        self._loader = ModelLoader(self._lock, self._serve, self._request_changed, self._reject_unfit)
        self._pool = ModelPool()
        self._slots: dict[int | None, Slot] = {}
        self._trials: dict[int | None, Trial] = {}
        self._wanted: dict[int | None, ModelConfig] = {}  # what was asked for last, in force or not
        self._watching = False
        self._closed = False

    # --- what serves --------------------------------------------------------------------------------------------------

    def open(self, config: ModelConfig, source_id: int | None = None) -> ServedModel:
        """Load the stage's first model, or then a source's own, and wait for it.

        Raises:
            ModelError: if it cannot be used.
        """
        served = next((slot.active for slot in self._slots.values() if slot.active.config == config), None)
        try:
            served = served or self._load(config)
        except ModelError as error:
            raise error if source_id is None else ModelError(f"source {source_id}: {error}") from error.__cause__
        with self._lock:
            self._slots[source_id] = Slot(source_id, self._pool.hold(served))
            self._wanted[source_id] = config
        return served

    def active(self, source_id: int | None = None) -> ServedModel:
        """The model that serves a source; the stage's for ``None`` and sources without one of their own."""
        with self._lock:
            return self._slot(source_id).active

    def in_force(self) -> list[ServedModel]:
        """Every model that serves."""
        with self._lock:
            return list({id(slot.active): slot.active for slot in self._slots.values()}.values())

    def versions(self) -> dict[int | None, str]:
        """Version in force of the stage's model (``None``) and of sources that have their own."""
        with self._lock:
            return {source_id: slot.active.version for source_id, slot in self._slots.items()}

    def route(self, source_ids: Sequence[int]) -> list[Group]:
        """Who does the frames of a batch, one group per model. Each group must be released.

        Args:
            source_ids: of the batch's frames, in order.
        """
        with self._lock:
            self._expire()
            active = {source_id: self._slot(source_id).active for source_id in set(source_ids)}
            return self._groups([active[source_id] for source_id in source_ids])

    def trials(self, source_ids: Sequence[int]) -> list[Group]:
        """New models that shall do these frames too, beside those in force. Each group must be released."""
        if not self._trials:
            return []
        with self._lock:
            trials = [self._trials.get(self._slot(source_id).source_id) for source_id in source_ids]
            return self._groups([trial.served if trial is not None else None for trial in trials])

    def release(self, group: Group) -> None:
        """The results of ``group`` are there: its model may go, if it is no longer in force."""
        with self._lock:
            self._pool.release(group.served)

    # --- how a batch went ---------------------------------------------------------------------------------------------

    def failed(self, served: ServedModel, reason: str) -> None:
        """``served`` failed on a batch: where there is a way back, it is taken; `route` tells who does it again."""
        with self._lock:
            for slot in list(self._slots.values()):
                if slot.active is served and slot.kept is not None:
                    self._roll_back(slot, reason)

    def went_well(self, served: ServedModel, source_ids: Sequence[int], counts: Sequence[int], seconds: float) -> None:
        """``served`` did a batch: the rules of its health are checked.

        Args:
            served: who did it.
            source_ids: of its frames.
            counts: how many objects it found in each.
            seconds: from the start of the batch to its results.
        """
        with self._lock:
            objects: dict[int | None, list[int]] = {}  # per frame, by slot
            slots = {source_id: self._slot(source_id).source_id for source_id in set(source_ids)}
            for source_id, count in zip(source_ids, counts, strict=True):
                objects.setdefault(slots[source_id], []).append(count)
            for key, own in objects.items():
                slot = self._slots[key]
                if slot.active is not served:
                    continue
                slot.empty_frames = 0 if sum(own) else slot.empty_frames + len(own)
                reason = slot.health.see(len(own), sum(own), seconds) if slot.health is not None else ""
                if reason:
                    self._roll_back(slot, reason)

    def compare(self, served: ServedModel, frames: list[tuple[Detections, Detections]]) -> None:
        """What the model in force and the new one, ``served``, found in each frame; the last batch decides."""
        with self._lock:
            for source_id, trial in self._trials_of(served):
                trial.comparison.add(frames)
                if not trial.comparison.complete:
                    continue
                problem = trial.comparison.problem()
                if problem:
                    self._end_trial(source_id, SwapState.REJECTED, problem)
                else:
                    self._switch(self._trials.pop(source_id))

    def failed_trial(self, served: ServedModel, reason: str) -> None:
        """A new model failed in its shadow run."""
        with self._lock:
            for source_id, _ in self._trials_of(served):
                self._end_trial(source_id, SwapState.REJECTED, f"in its shadow run: {reason}")

    # --- swaps --------------------------------------------------------------------------------------------------------

    def request(self, config: ModelConfig, source_id: int | None = None) -> Answer:
        """Load a model in the background and let it take over.

        Of several requests the last one wins; each is answered: ``active``, ``rejected`` or ``superseded``.

        Args:
            config: the new model.
            source_id: the source that gets it for its own; ``None``: the stage's.
        """
        request = SwapRequest(config, source_id)
        with self._lock:
            if self._closed:
                self._answer(request, SwapState.REJECTED, reason=STOPPING)
            else:
                self._supersede(source_id, f"'{config.path}' was asked for after it")
                self._wanted[source_id] = config
                self._follow_files()
                self._loader.put(request)
        return request.answer

    def withdraw(self, source_id: int) -> None:
        """A source has no model of its own any more: the stage's does its frames from the next batch on."""
        with self._lock:
            self._supersede(source_id, "the source uses the stage's model again")
            self._wanted.pop(source_id, None)
            self._follow_files()
            slot = self._slots.pop(source_id, None)
            if slot is not None:
                self._drop_kept(slot)
                self._pool.release(slot.active)

    def refresh(self, fresh: Collection[int] = ()) -> None:
        """Ask again for every model that was asked for last. One that is in force, unchanged, is not loaded again.

        Args:
            fresh: sources whose own models were asked for a moment ago: once is enough.
        """
        with self._lock:
            for source_id, config in list(self._wanted.items()):
                if source_id not in fresh:
                    self.request(config, source_id)

    def watch(self, on: bool) -> None:
        """Whether a change of a model's file loads it again. See `FileWatch` for when a change counts."""
        with self._lock:
            self._watching = on
            self._follow_files()

    def close(self) -> None:
        """Let go of everything. Requests that wait are answered."""
        with self._lock:
            self._closed = True
            for request in self._loader.close():
                self._answer(request, SwapState.REJECTED, reason=STOPPING)
            for source_id in list(self._trials):
                self._end_trial(source_id, SwapState.REJECTED, STOPPING)
            for slot in self._slots.values():
                self._drop_kept(slot)
                self._pool.release(slot.active)
            self._slots.clear()
        self._loader.join(LOADING_TIMEOUT_S)
        self._pool.close(CLOSE_TIMEOUT_S)

    # --- on the loader's thread ---------------------------------------------------------------------------------------

    def _serve(self, request: SwapRequest) -> None:
        served = None
        try:
            if self._is_in_force(request):
                return
            with self._lock:
                self._say(request, SwapState.LOADING)
            served = self._load(request.config)
            self._prepare(served, request.source_id)
        except ANY_ERROR as error:
            reason = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
            with self._lock:
                self._answer(request, SwapState.REJECTED, served, reason)
                if served is not None:
                    self._pool.release(self._pool.hold(served))
            return
        with self._lock:
            self._offer(request, self._pool.shared(served))

    def _is_in_force(self, request: SwapRequest) -> bool:
        """Answer a request for what is in force already, which need not be loaded to find that out."""
        with self._lock:
            slot = self._slots.get(request.source_id)
            active = slot.active if slot is not None else None
        if active is None or active.config != request.config:
            return False
        if active.version != self._version(request.config, active.model):
            return False
        with self._lock:
            self._answer(request, SwapState.ACTIVE, active, IN_FORCE)
        return True

    def _offer(self, request: SwapRequest, served: ServedModel) -> None:
        """A model is ready and held: it takes over, or begins its shadow run."""
        newer = self._loader.newest(request.source_id)
        slot = self._slots.get(request.source_id)
        if self._closed or newer is not None:
            state = SwapState.REJECTED if newer is None else SwapState.SUPERSEDED
            self._answer(request, state, served, f"'{newer.config.path}' was asked for after it" if newer else STOPPING)
            self._pool.release(served)
        elif slot is not None and slot.active is served:
            self._answer(request, SwapState.ACTIVE, served, IN_FORCE)
            self._pool.release(served)
        elif self.options.shadow:
            self._trials[request.source_id] = Trial(request, served, Comparison(self.options))
            self._say(request, SwapState.SHADOW, served)
        else:
            self._switch(Trial(request, served, Comparison(self.options)))

    # --- steps; with the lock held ------------------------------------------------------------------------------------

    def _slot(self, source_id: int | None) -> Slot:
        return self._slots.get(source_id) or self._slots[None]

    def _groups(self, models: Sequence[ServedModel | None]) -> list[Group]:
        groups: list[Group] = []
        for served in dict.fromkeys(models):  # each once
            if served is not None:
                places = [place for place, other in enumerate(models) if other is served]
                groups.append(Group(self._pool.hold(served), places))
        return groups

    def _switch(self, trial: Trial) -> None:
        """A new model, which is held, takes over; the one before is kept for a while."""
        source_id = trial.request.source_id
        before = self._slots.get(source_id)
        old = before or self._slots[None]
        slot = Slot(source_id, trial.served, trial.request, borrowed=before is None)
        if before is not None:
            self._drop_kept(before)
        if self.options.keep:
            slot.kept, slot.keep_until = self._pool.hold(old.active), self._clock() + self.options.keep
            slot.health = Health(self.options, old.empty_frames < self.options.no_detections)
        self._slots[source_id] = slot
        if before is not None:
            self._pool.release(before.active)
        self._answer(trial.request, SwapState.ACTIVE, trial.served)

    def _roll_back(self, slot: Slot, reason: str) -> None:
        assert slot.kept is not None and slot.request is not None
        failed = slot.active
        if slot.borrowed:
            self._pool.release(slot.kept)
            del self._slots[slot.source_id]
        else:
            self._slots[slot.source_id] = Slot(slot.source_id, slot.kept)
        self._say(slot.request, SwapState.ROLLED_BACK, failed, reason)
        self._pool.release(failed)

    def _expire(self) -> None:
        """Let go of old models that were kept long enough."""
        for slot in self._slots.values():
            if slot.kept is not None and self._clock() >= slot.keep_until:
                self._drop_kept(slot)

    def _drop_kept(self, slot: Slot) -> None:
        if slot.kept is not None:
            self._pool.release(slot.kept)
        slot.kept = slot.health = None

    def _trials_of(self, served: ServedModel) -> list[tuple[int | None, Trial]]:
        return [(source_id, trial) for source_id, trial in self._trials.items() if trial.served is served]

    def _end_trial(self, source_id: int | None, state: SwapState, reason: str) -> None:
        trial = self._trials.pop(source_id)
        self._answer(trial.request, state, trial.served, reason)
        self._pool.release(trial.served)

    def _supersede(self, source_id: int | None, reason: str) -> None:
        """What is on its way to a place is not wanted any more."""
        waiting = self._loader.take(source_id)
        if waiting is not None:
            self._answer(waiting, SwapState.SUPERSEDED, reason=reason)
        if source_id in self._trials:
            self._end_trial(source_id, SwapState.SUPERSEDED, reason)

    def _answer(
        self, request: SwapRequest, state: SwapState, served: ServedModel | None = None, reason: str = ""
    ) -> None:
        request.answer.set_result(self._say(request, state, served, reason))

    def _say(
        self, request: SwapRequest, state: SwapState, served: ServedModel | None = None, reason: str = ""
    ) -> SwapStatus:
        in_force = self._slot(request.source_id).active.version if self._slots else ""
        version = served.version if served is not None else ""
        status = SwapStatus(state, request.config.path, version, in_force, reason, request.source_id)
        self._notify(status)
        return status

    # --- watched files ------------------------------------------------------------------------------------------------

    def _follow_files(self) -> None:
        configs = self._wanted.values() if self._watching else ()
        self._loader.watch({path for config in configs for path in files_of(config)})

    def _request_changed(self, paths: set[str]) -> None:
        """Ask again for the models of files that have new content."""
        for source_id, config in list(self._wanted.items()):
            if paths.intersection(files_of(config)):
                log.info("model '%s' has changed: loading it again", config.path)
                self.request(config, source_id)

    def _reject_unfit(self, problems: Mapping[str, str]) -> None:
        """Say which files will not become complete. Their models are loaded when they do."""
        for source_id, config in self._wanted.items():
            for path in problems.keys() & set(files_of(config)):
                self._say(SwapRequest(config, source_id), SwapState.REJECTED, reason=problems[path])
