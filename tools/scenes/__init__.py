"""Generated street scenes with truth: demo clips, training pictures, and scores against the truth."""

from tools.scenes.scene import Scene
from tools.scenes.traffic import CLASSES
from tools.scenes.truth import Truth, TruthObject

__all__ = ["CLASSES", "Scene", "Truth", "TruthObject"]
