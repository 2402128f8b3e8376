"""Which frames go into the next batch and when it leaves: nvstreammux's policy, without GStreamer.

Not thread-safe; the mux calls it under its lock. Times are seconds of any steady clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

QUEUE_LENGTH = 4  # frames that wait per source; enough to ride out a slow frame, little memory (DeepStream: 10)
FILE_PATIENCE = 1.0  # s


@dataclass(slots=True, eq=False)
class Input:
    """One source of the mux.

    Attributes:
        index: N of its pad ``sink_N``.
        frames: what waits, oldest first.
        ended: nothing more will come.
        late: it missed a deadline; nobody waits for it until it delivers again.
    """

    index: int
    frames: deque[Any] = field(default_factory=deque)
    ended: bool = False
    late: bool = False

    @property
    def expected(self) -> bool:
        return not self.ended and not self.late


class Batcher:
    """Collects frames of several sources round-robin.

    Files (``live=False``): sources advance together, so a batch holds as many frames of each source that still runs as
    fit for all (one, if the sources are more than half the batch size; NVIDIA's gives spare slots to some sources).
    Decoding on a CPU is bursty, so a batch waits at least `FILE_PATIENCE` for that, however short ``timeout`` is;
    NVIDIA's would send many partial batches instead.
    Live sources: at most one frame of each; a batch leaves when it is full or every running source has delivered.
    Either way it leaves ``timeout`` seconds after its first frame came (``None``: never), and a source that is missing
    then (files: after `FILE_PATIENCE` if there is no timeout) is not waited for again until it delivers.

    Attributes:
        most: frames of one source that a batch may hold; ``None`` for any number. Decoders in GPU memory own few frames
            and stop while all of them are in use, so a batch must not wait for more.
    """

    def __init__(self, batch_size: int, live: bool, timeout: float | None) -> None:
        self.batch_size, self.live, self.timeout = batch_size, live, timeout
        self.inputs: list[Input] = []
        self.most: int | None = None
        self._since: float | None = None  # when the next batch got its first frame
        self._turn = 0  # index of the input that comes first in the next batch

    def put(self, source: Input, frame: Any, now: float) -> None:
        """A source delivers."""
        source.frames.append(frame)
        source.late = False
        if self._since is None:
            self._since = now

    def wanting(self) -> list[Input]:
        """The sources of which the next batch can take another frame."""
        share = self._share()
        return [source for source in self.inputs if not source.ended and len(source.frames) < share]

    def _share(self) -> int:
        """Frames that each running source gives to the next batch; sources that have ended give what they left."""
        if self.live:
            return 1
        running = left = 0
        for source in self.inputs:
            if source.ended or source.late:
                left += len(source.frames)
            else:
                running += 1
        share = max(1, (self.batch_size - left) // max(1, running))
        return min(share, self.most or share)

    def deadline(self) -> float | None:
        """When to look again at the latest; ``None`` if only frames decide."""
        if self._since is None or (self.live and self.timeout is None):
            return None
        patience = self.timeout or 0.0
        return self._since + (patience if self.live else max(patience, FILE_PATIENCE))

    def ready(self, now: float) -> bool:
        """Whether a batch should leave now. After the deadline, missing sources are late from then on."""
        delivering = len([i for i in self.inputs if i.frames])
        deadline = self.deadline()
        if deadline is not None and now >= deadline:
            for source in self.inputs:
                source.late = not source.frames
            if self.timeout is not None:
                return delivering > 0
            self._since = None
        if self.live and delivering >= self.batch_size:
            return True
        share = self._share()
        return delivering > 0 and all(len(i.frames) >= share for i in self.inputs if i.expected)

    def take(self, now: float) -> list[tuple[Input, Any]]:
        """The next batch: first each source's oldest frame by pad number, then their second ones, and so on."""
        by_pad = sorted([i for i in self.inputs if i.frames], key=attrgetter("index"))
        counts = self._allot(by_pad)
        rounds = range(max(counts.values(), default=0))
        batch = [(source, source.frames.popleft()) for k in rounds for source in by_pad if counts[source] > k]
        self._since = now if any(source.frames for source in self.inputs) else None
        return batch

    def _slots(self) -> int:
        """Slots of the next batch: whole rounds of the sources that take part."""
        sources = len([i for i in self.inputs if i.frames or i.expected])
        slots = self.batch_size - self.batch_size % sources if sources <= self.batch_size else self.batch_size
        return min(slots, sources * self.most) if self.most else slots

    def _available(self, source: Input) -> int:
        limit = 1 if self.live else self.most
        return min(len(source.frames), limit) if limit else len(source.frames)

    def _allot(self, by_pad: list[Input]) -> dict[Input, int]:
        """How many frames each of these sources gives. Sources that are more than the slots take turns."""
        order = self._from_turn(by_pad)
        counts = dict.fromkeys(order, 0)
        free = self._slots()
        while free and order:
            giving = order[:free]
            for source in giving:
                counts[source] += 1
            free -= len(giving)
            self._turn = giving[-1].index + 1
            order = [source for source in order if free and counts[source] < self._available(source)]
        return counts

    def _from_turn(self, sources: list[Input]) -> list[Input]:
        return [s for s in sources if s.index >= self._turn] + [s for s in sources if s.index < self._turn]
