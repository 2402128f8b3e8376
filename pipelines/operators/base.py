"""The guard that every metadata operator of ours runs in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyservicemaker import BatchMetadataOperator

from elements.base import ElementError, trace_of

Report = Callable[[str, str], None]
"""Called with (text, trace) when an operator fails."""


class Operator(BatchMetadataOperator):
    """A metadata operator whose exceptions reach the runner.

    In NVIDIA's pyservicemaker an exception that leaves ``handle_metadata`` aborts the process. Here the first one is
    reported, and the operator does nothing more. Subclasses write `process`, and `close` if they hold a resource.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report
        self._failed = False

    def handle_metadata(self, batch_meta: Any) -> None:
        """pyservicemaker's hook, called once per batch on the streaming thread."""
        if self._failed:
            return
        try:
            self.process(batch_meta)
        except Exception as error:
            self._failed = True
            text = str(error) if isinstance(error, ElementError) else f"{type(self).__name__}: {error}"
            self._report(text, trace_of(error))

    def process(self, batch_meta: Any) -> None:
        """What the operator does with one batch. An `ElementError` is shown as it is."""
        raise NotImplementedError

    def end(self) -> None:
        """Called once before any operator is closed: nothing more comes. Must not wait."""

    def close(self) -> None:
        """Called once, after the pipeline has stopped."""


class InTurn(BatchMetadataOperator):
    """Several operators as one, in their order."""

    def __init__(self, operators: Sequence[BatchMetadataOperator]) -> None:
        super().__init__()
        self._operators = operators

    def handle_metadata(self, batch_meta: Any) -> None:
        """pyservicemaker's hook."""
        for operator in self._operators:
            operator.handle_metadata(batch_meta)
