"""Loaded models, shared by all that use them and closed when the last one lets go."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from elements.collector import collect_spared
from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.model import Model, open_model
from elements.inference.swap.memory import trim
from elements.inference.swap.version import files_of, mark_of, version_of

log = logging.getLogger("gstorch.swap")

# A model of one's own may call sys.exit(), which on a thread of ours would end nothing but the thread.
ANY_ERROR = (Exception, SystemExit, KeyboardInterrupt)  # Ctrl-C reaches the main thread alone, where no model runs


@dataclass(eq=False, slots=True)
class ServedModel:
    """A model that is loaded, and what its results are stamped with.

    Attributes:
        config: what it was loaded from.
        model: ready to infer.
        version: see `version_of`.
        users: how many hold it: sources, and batches on the way.
    """

    config: ModelConfig
    model: Model
    version: str
    users: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Class names by number."""
        return tuple(getattr(self.model, "names", ()))


def load_served(config: ModelConfig) -> ServedModel:
    """Load the model of ``config``.

    Raises:
        ModelError: if it cannot be used; with the cause where the model's own code failed.
    """
    files = files_of(config)
    before = [mark_of(path) for path in files]
    model = None
    try:
        model = open_model(config)
        model.load()
        version = version_of(config, model)
        if [mark_of(path) for path in files] != before:
            raise ModelError(f"model '{config.path}' changed while it was loaded: give it when it is complete")
    except ANY_ERROR as error:
        if model is not None:
            close_model(model, config.path)
        if isinstance(error, ModelError):
            raise error from None
        raise ModelError(f"model '{config.path}' fails to load: {type(error).__name__}: {error}") from error
    return ServedModel(config, model, version)


def close_model(model: Model, path: str) -> None:
    """Close a model that nothing depends on any more; what fails is logged."""
    try:
        model.close()
    except ANY_ERROR as error:
        log.error("model '%s' fails in close(): %s: %s", path, type(error).__name__, error, exc_info=error)


def _retire(served: ServedModel) -> None:
    close_model(served.model, served.config.path)
    collect_spared()
    trim()


class ModelPool:
    """Every loaded model once, counted by its users. Callers hold the `Swapper`'s lock, but for `close`."""

    def __init__(self) -> None:
        self._loaded: list[ServedModel] = []
        self._closing: list[threading.Thread] = []

    def shared(self, served: ServedModel) -> ServedModel:
        """The model of the same options and content that is loaded already, else ``served`` itself; held.

        In the first case ``served`` is closed.
        """
        loaded = next((m for m in self._loaded if m.config == served.config and m.version == served.version), None)
        self.hold(served)
        if loaded is None:
            return served
        self.release(served)
        return self.hold(loaded)

    def hold(self, served: ServedModel) -> ServedModel:
        """Count one more user of ``served``."""
        if served not in self._loaded:
            self._loaded.append(served)
        served.users += 1
        return served

    def release(self, served: ServedModel) -> None:
        """Count one user less. After the last one the model is closed, on a thread of its own: that may take time."""
        served.users -= 1
        if served.users:
            return
        self._loaded.remove(served)
        self._closing = [thread for thread in self._closing if thread.is_alive()]
        thread = threading.Thread(target=_retire, args=(served,), name="close-model", daemon=True)
        self._closing.append(thread)
        thread.start()

    def close(self, timeout: float) -> None:
        """Wait until the models that were let go are closed, at most ``timeout`` seconds each."""
        for thread in self._closing:
            thread.join(timeout)
