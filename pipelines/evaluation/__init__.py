"""How good predictions are, measured against truth: average precision, precision and recall, tracks."""

from pipelines.evaluation.annotations import Annotations, EvaluationError
from pipelines.evaluation.evaluate import Evaluation, evaluate
from pipelines.evaluation.events import read_events
from pipelines.evaluation.truth import read_truth

__all__ = ["Annotations", "Evaluation", "EvaluationError", "evaluate", "read_events", "read_truth"]
