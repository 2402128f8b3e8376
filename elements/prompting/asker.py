"""Requests beside the stream: a bounded queue, a few threads, a budget and pauses."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from elements.prompting.answers import Answer, Question
from elements.prompting.budget import Budget, Spent
from elements.prompting.client import Reply, RequestError
from elements.prompting.options import PromptOptions
from elements.prompting.pictures import Picture

log = logging.getLogger("gstorch.pyprompt")

BACKOFF_S, MOST_BACKOFF_S, MOST_RETRY_AFTER_S = 1.0, 30.0, 300.0


class Client(Protocol):
    """What `elements.prompting.client.ChatClient` does."""

    def ask(self, text: str, pictures: list[Picture]) -> Reply: ...


@dataclass(slots=True)
class Counts:
    """What became of questions: ``asked`` = ``answered`` + ``failed`` + ``dropped`` + those that are under way.

    ``over_budget`` are those of them that had to wait for the budget.
    """

    asked: int = 0
    answered: int = 0
    failed: int = 0
    dropped: int = 0
    over_budget: int = 0


class Asker:
    """Sends questions on threads of its own. Nothing here waits, except `finish`.

    After a failure that may pass, all requests pause: as long as the endpoint asks for (at most `MOST_RETRY_AFTER_S`),
    else 1 s, 2 s, 4 s … by the question's attempts, at most `MOST_BACKOFF_S`. After one that will not pass (HTTP 401)
    they pause for `MOST_BACKOFF_S`, and that question is given up. A question's further attempts come before those
    that wait.

    Args:
        client: sends one question; thread-safe.
        read: reads the text of an answer.
        options: of the stage.
        name: of the stage.
        on_failure: called on any thread with the text of a failure, if ``on_error`` is ``stop``.
        clock: seconds, for tests.
        backoff: first pause, seconds.
    """

    def __init__(
        self,
        client: Client,
        read: Callable[[str], Any],
        options: PromptOptions,
        name: str,
        on_failure: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        backoff: float = BACKOFF_S,
    ) -> None:
        self.counts = Counts()
        self._client, self._read, self._options, self._name = client, read, options, name
        self._on_failure, self._clock, self._backoff = on_failure, clock, backoff
        self._changed = threading.Condition()  # guards everything below, and the counts
        self._waiting: deque[Question] = deque()
        self._results: list[tuple[Question, Answer | None]] = []
        self._budget = Budget(options.requests_per_minute, options.tokens_per_minute)
        self._paused_until = 0.0
        self._busy = 0
        self._stopped = self._abandoned = False
        self._named: set[str] = set()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(options.concurrent)
        ]
        for thread in self._threads:
            thread.start()

    def give(self, question: Question) -> None:
        """Queue a question, or drop one as declared."""
        with self._changed:
            self.counts.asked += 1
            if len(self._waiting) >= self._options.queue:
                gone = question if self._options.overflow == "drop-newest" else self._waiting.popleft()
                self._give_up(gone, "dropped")
                self._name_once("overflow", "more questions than the endpoint answers: some are dropped")
                if gone is question:
                    return
            self._waiting.append(question)
            self._changed.notify()

    def results(self) -> list[tuple[Question, Answer | None]]:
        """What came since the last call: questions and answers, ``None`` where there is none."""
        if not self._results:  # without the lock: if one comes just now, the next frame takes it
            return []
        with self._changed:
            results, self._results = self._results, []
        return results

    def finish(self, limit_s: float) -> bool:
        """Wait until all questions are done with, at most ``limit_s`` seconds and no longer than until `abandon`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._abandoned or not (self._waiting or self._busy), limit_s)

    def abandon(self) -> None:
        """Let go who waits in `finish`."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop what is open. Requests under way end by themselves, by their time-out at the latest, and are ignored."""
        with self._changed:
            self._stopped = self._abandoned = True
            while self._waiting:
                self._give_up(self._waiting.popleft(), "dropped")
            self.counts.dropped += self._busy
            self._changed.notify_all()

    # --- threads ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                question = self._next()
                if question is None:
                    return
                spent = self._budget.begin(self._clock())
                self._busy += 1
            outcome = self._send(question)
            with self._changed:
                self._busy -= 1
                if self._stopped:
                    return
                self._settle(question, spent, outcome)
                self._changed.notify_all()

    def _next(self) -> Question | None:
        """The next question, once it may be sent; ``None`` at the end. The lock is held."""
        while not self._stopped:
            if not self._waiting:
                self._changed.wait()
                continue
            now = self._clock()
            over = self._budget.wait_s(now)
            for question in self._waiting if over > 0 else ():
                self.counts.over_budget += not question.over_budget
                question.over_budget = True
            wait = max(over, self._paused_until - now)
            if wait <= 0:
                return self._waiting.popleft()
            self._changed.wait(wait)
        return None

    def _send(self, question: Question) -> Answer | RequestError:
        started = time.monotonic()
        tokens = 0
        try:
            reply = self._client.ask(question.text, question.pictures)
            tokens = reply.tokens
            data = self._read(reply.text)
        except RequestError as error:
            error.tokens = tokens
            return error
        except Exception as error:  # a thread that dies would take its share of the requests with it
            log.exception("%s", self._name)
            return RequestError(type(error).__name__, f"{type(error).__name__}: {error}", passing=False)
        seconds, shown = time.monotonic() - started, len(question.pictures)
        return Answer(question, reply.text, data, reply.model, seconds, reply.tokens, shown, reply.truncated)

    # --- with the lock held -------------------------------------------------------------------------------------------

    def _settle(self, question: Question, spent: Spent, outcome: Answer | RequestError) -> None:
        question.attempts += 1
        self._budget.settle(spent, outcome.tokens)
        if isinstance(outcome, Answer):
            self.counts.answered += 1
            self._done(question, outcome)
            if self._options.tokens_per_minute and not outcome.tokens:
                self._name_once("usage", "the endpoint does not tell what answers cost: no limit on tokens")
            return
        self._pause(question, outcome)
        if outcome.passing and question.attempts <= self._options.retries:
            self._name_once(outcome.kind, f"{outcome}: another attempt follows; counted from now on")
            self._waiting.appendleft(question)
            return
        self._give_up(question, "failed")
        if self._options.on_error == "stop":
            self._on_failure(f"{self._name}: {_subject(question)}: {outcome}")
        else:
            self._name_once(
                f"{outcome.kind} for good", f"{_subject(question)}: no answer: {outcome}; counted from now on"
            )

    def _pause(self, question: Question, error: RequestError) -> None:
        if error.retry_after is not None:
            pause = min(error.retry_after, MOST_RETRY_AFTER_S)
        elif error.passing:
            pause = min(self._backoff * 2 ** (question.attempts - 1), MOST_BACKOFF_S)
        else:
            pause = MOST_BACKOFF_S
        self._paused_until = max(self._paused_until, self._clock() + pause)

    def _give_up(self, question: Question, counter: str) -> None:
        setattr(self.counts, counter, getattr(self.counts, counter) + 1)
        self._done(question, None)

    def _done(self, question: Question, answer: Answer | None) -> None:
        question.pictures = []
        self._results.append((question, answer))

    def _name_once(self, kind: str, text: str) -> None:
        if kind not in self._named:
            self._named.add(kind)
            log.warning("%s: %s", self._name, text)


def _subject(question: Question) -> str:
    whom = f"track {question.track_id}" if question.track_id is not None else f"frame {question.frame_number}"
    return f"source '{question.source}', {whom}"
