"""A model outside of a pipeline: one picture at a time, and every failure is a text for the user."""

from __future__ import annotations

from types import TracebackType

from elements.inference.answer import checked_answer
from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError, brief
from elements.inference.frame import Frame
from elements.inference.swap.served import ANY_ERROR, close_model, load_served
from elements.metadata.detections import Detections


class SingleModel:
    """A loaded model, for commands that look at pictures. Close it, or use it in a ``with`` statement.

    Args:
        config: the model, a file or a class of one's own.

    Raises:
        ModelError: if it cannot be used, whatever its own code raises.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._path = config.path
        self.model = load_served(config).model
        self.names: tuple[str, ...] = tuple(getattr(self.model, "names", ()))

    def find(self, frame: Frame, where: str) -> Detections:
        """What is found in a frame, in its pixels, without rows that are not finite.

        Args:
            frame: the picture.
            where: what it is called in messages, such as ``frame 3 of door.mp4``.

        Raises:
            ModelError: if the model fails or answers what is no result; the cause is what it raised.
        """
        try:
            return checked_answer(self.model.infer([frame]), 1, str(self._path))[0][0]
        except ANY_ERROR as error:
            cause = error.__cause__ or error
            raise ModelError(f"model '{self._path}' fails on {where}: {brief(cause)}") from error

    def label(self, class_id: int) -> str:
        """The class's name, its number if it has none."""
        return self.names[class_id] if class_id < len(self.names) else str(class_id)

    def close(self) -> None:
        """Let go of the model; what fails is logged."""
        close_model(self.model, self._path)

    def __enter__(self) -> SingleModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
