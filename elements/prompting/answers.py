"""Answers: read as text or JSON, and kept until frames take them along."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elements.prompting.client import RequestError
from elements.prompting.options import PromptError, PromptOptions
from elements.prompting.pictures import Picture

MOST_TRACKS = 10_000  # of a source, whose answers are kept; the one that was out of sight for longest goes first
LABEL_LENGTH = 60
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


@dataclass(slots=True, eq=False)
class Question:
    """One request.

    Attributes:
        source_id: of the source.
        source: its name.
        track_id: whom it is about; ``None``: the whole frame.
        label: class name of the track.
        frame_number: of the frame in which it became due.
        time_s: of that frame, seconds of stream time.
        text: of the prompt, filled in.
        pictures: what is shown; empty once it is done with, since answers are kept for long.
        attempts: how often it was sent.
        over_budget: it had to wait for the budget.
    """

    source_id: int
    source: str
    track_id: int | None
    label: str
    frame_number: int
    time_s: float
    text: str
    pictures: list[Picture]
    attempts: int = 0
    over_budget: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a question of so many pictures; ``data`` is the JSON, if it was asked for."""

    question: Question
    text: str
    data: Any
    model: str
    latency_s: float
    tokens: int
    pictures: int = 1
    truncated: bool = False

    def as_json(self) -> dict[str, Any]:
        """As plain data, for metadata and events."""
        found = {
            "text": self.text,
            "data": self.data,
            "model": self.model,
            "latency_s": round(self.latency_s, 3),
            "tokens": self.tokens or None,
            "frame": self.question.frame_number,
            "time_s": round(self.question.time_s, 3),
            "pictures": self.pictures,
        }
        if self.data is None:
            del found["data"]
        return {**found, "truncated": True} if self.truncated else found

    def as_event(self, stage: str, attribute: str) -> dict[str, Any]:
        """As an event ``answer`` of a frame."""
        asked = self.question
        return {
            "event": "answer",
            "stage": stage,
            "source": asked.source,
            "track_id": asked.track_id,
            "label": asked.label,
            "attribute": attribute,
            **self.as_json(),
        }

    def label(self, attribute: str) -> str:
        """In a few words, as a classifier's label: of JSON the value of ``attribute``, if it has one.

        >>> Answer(None, '{"colour": "red", "n": 2}', {"colour": "red", "n": 2}, "m", 1, 9).label("colour")
        'red'
        """
        text = self.text
        if self.data is not None:
            found = self.data.get(attribute) if isinstance(self.data, Mapping) else self.data
            found = self.data if found is None else found
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        text = " ".join(text.split())
        return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1].rstrip()}…"


class Reader:
    """Reads the text of an answer as the stage wants it.

    Raises:
        PromptError: if the schema is none, or the library that checks it is not installed.
    """

    def __init__(self, options: PromptOptions) -> None:
        self._json = options.answer == "json"
        self._validator: Any = None
        if options.answer_schema is not None:
            self._validator = _validator(options.answer_schema)

    def read(self, text: str) -> Any:
        """The answer's data; ``None`` where text is wanted.

        Raises:
            RequestError: if it is empty, no JSON, or does not fit the schema.
        """
        if not text:
            raise RequestError("empty answer", "the answer is empty", retry_after=0.0)
        if not self._json:
            return None
        fenced = _FENCE.fullmatch(text)
        try:
            data = json.loads(fenced[1] if fenced else text)
        except (ValueError, RecursionError):
            raise RequestError("not JSON", f"the answer is not JSON: {text[:80]!r}", retry_after=0.0) from None
        problem = next(self._validator.iter_errors(data), None) if self._validator is not None else None
        if problem is not None:
            place = problem.json_path.removeprefix("$") or "it"
            text = f"the answer does not fit the schema: {place}: {problem.message[:200]}"
            raise RequestError("not by the schema", text, retry_after=0.0)
        return data


class AnswerBook:
    """The newest answer about each track, and those that no frame has taken along yet."""

    def __init__(self) -> None:
        self._tracks: dict[int, OrderedDict[int, Answer]] = {}  # by source id
        self._news: list[Answer] = []
        self._ended: set[int] = set()

    def put(self, answer: Answer) -> None:
        """Keep an answer."""
        self._news.append(answer)
        asked = answer.question
        if asked.track_id is not None and asked.source_id not in self._ended:
            tracks = self._tracks.setdefault(asked.source_id, OrderedDict())
            tracks[asked.track_id] = answer
            if len(tracks) > MOST_TRACKS:
                tracks.popitem(last=False)

    def take_news(self, source_id: int) -> list[Answer]:
        """Answers that a frame of this source takes along, oldest first: its own, and those of sources that ended."""
        self._ended.discard(source_id)
        if not self._news:
            return []
        takers = {source_id, *self._ended}
        taken = [answer for answer in self._news if answer.question.source_id in takers]
        self._news = [answer for answer in self._news if answer.question.source_id not in takers]
        return taken

    def of_track(self, source_id: int, track_id: int) -> Answer | None:
        """What is known of a track, which is in sight."""
        tracks = self._tracks.get(source_id)
        if tracks is None or track_id not in tracks:
            return None
        tracks.move_to_end(track_id)
        return tracks[track_id]

    def knows(self, source_id: int) -> bool:
        """Whether there is an answer about any track of a source."""
        return source_id in self._tracks

    def forget(self, source_id: int) -> None:
        """A source has ended: what comes late about its tracks goes with frames of others."""
        self._ended.add(source_id)
        self._tracks.pop(source_id, None)

    @property
    def left(self) -> int:
        """Answers that no frame has taken along."""
        return len(self._news)


def _validator(schema: Mapping[str, Any]) -> Any:
    try:
        import jsonschema
    except ImportError:
        raise PromptError(
            "answer_schema is checked by jsonschema, which is not installed: pip install 'gstorch[prompt]'"
        ) from None
    kind = jsonschema.validators.validator_for(schema)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise PromptError(f"answer_schema is no JSON Schema: {error.message}") from None
    return kind(schema)
