"""Whether a model that took over does as it should, while there is a way back."""

from __future__ import annotations

from dataclasses import dataclass

from elements.inference.swap.options import SwapOptions

SLOW_BATCHES = 3  # in a row; a single slow batch has many causes


@dataclass(slots=True)
class Health:
    """Checks the declared rules, batch by batch.

    Attributes:
        options: the rules.
        old_found: whether the old model found anything in its last ``no_detections`` frames.
    """

    options: SwapOptions
    old_found: bool
    _empty_frames: int = 0
    _slow_batches: int = 0

    def see(self, frames: int, objects: int, seconds: float) -> str:
        """Take note of a batch; which rule it breaks, in words, or nothing."""
        self._empty_frames = 0 if objects else self._empty_frames + frames
        limit = self.options.no_detections
        if limit and self.old_found and self._empty_frames >= limit:
            return f"it found nothing in {self._empty_frames} frames, and the model before it did (swap.no_detections)"
        slow = self.options.max_latency and seconds > self.options.max_latency
        self._slow_batches = self._slow_batches + 1 if slow else 0
        if self._slow_batches >= SLOW_BATCHES:
            return (
                f"{SLOW_BATCHES} batches in a row took longer than {1000 * self.options.max_latency:g} ms, the last "
                f"{1000 * seconds:.0f} ms (swap.max_latency)"
            )
        return ""
