"""What may be asked, how requests fail, and what becomes of answers. Without GStreamer."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from elements.prompting.answers import Answer, AnswerBook, Question, Reader
from elements.prompting.asker import Asker
from elements.prompting.budget import Budget
from elements.prompting.client import ChatClient, Reply, RequestError, retry_after_s
from elements.prompting.options import PromptError
from elements.prompting.pictures import encoded
from tests.prompts import a_picture, options
from tests.vlm_server import Says, VlmServer
from tests.waiting import wait_for

# --- budget -----------------------------------------------------------------------------------------------------------


def test_requests_in_any_minute():
    budget = Budget(requests=3)
    for at in (0, 10, 20):
        assert budget.wait_s(at) == 0
        budget.begin(at)
    assert [budget.wait_s(at) for at in (20, 59, 60)] == [40, 1, 0]
    budget.begin(60)
    assert budget.wait_s(60) == 10


def test_tokens_in_any_minute_as_answers_tell():
    budget = Budget(tokens=1000)
    first = budget.begin(0)
    assert budget.wait_s(0) == 0  # nothing is known of the cost yet
    budget.settle(first, 400)
    second = budget.begin(10)
    budget.settle(second, 500)
    assert budget.wait_s(20) == 40  # 900 are spent, and the next one is taken to cost 500
    assert budget.wait_s(60) == 0
    budget.settle(budget.begin(60), 0)  # a failure costs nothing
    assert budget.wait_s(61) == 0


def test_one_request_larger_than_the_budget_is_let_through_alone():
    budget = Budget(tokens=100)
    budget.settle(budget.begin(0), 5000)
    assert budget.wait_s(1) == 59
    assert budget.wait_s(60) == 0


# --- answers ----------------------------------------------------------------------------------------------------------


def question(track_id=1, source_id=0):
    return Question(source_id, "door", track_id, "person", 12, 0.48, "Who?", [a_picture()])


def answer(text="a red coat", data=None, **whom):
    return Answer(question(**whom), text, data, "vl", 1.23456, 120)


def test_answers_stay_with_their_track_and_are_news_once():
    book = AnswerBook()
    book.put(answer("one"))
    book.put(answer("two", track_id=2, source_id=1))
    assert [a.text for a in book.take_news(0)] == ["one"]
    assert book.take_news(0) == []
    assert (book.of_track(0, 1).text, book.of_track(0, 2), book.of_track(1, 1)) == ("one", None, None)
    book.put(answer("three"))
    assert book.of_track(0, 1).text == "three"
    assert book.left == 2


def test_answers_about_a_source_that_has_ended_go_with_another():
    book = AnswerBook()
    book.put(answer("early"))
    book.forget(0)
    book.put(answer("late"))
    assert [a.text for a in book.take_news(1)] == ["early", "late"]
    assert not book.knows(0)


def test_an_answer_as_event_and_label():
    event = answer("a red coat").as_event("wears", "coat")
    assert event == {
        "event": "answer", "stage": "wears", "source": "door", "track_id": 1, "label": "person", "attribute": "coat",
        "text": "a red coat", "model": "vl", "latency_s": 1.235, "tokens": 120, "frame": 12, "time_s": 0.48,
        "pictures": 1,
    }  # fmt: skip
    assert answer("two\n words").label("coat") == "two words"
    assert answer("x" * 90).label("coat") == "x" * 59 + "…"
    assert answer("…", {"coat": "red"}).label("coat") == "red"
    assert answer("…", {"hat": None}).label("coat") == '{"hat": null}'


def test_json_answers_are_read_and_checked():
    schema = {"type": "object", "required": ["coat"], "properties": {"coat": {"type": "string"}}}
    reader = Reader(options(answer="json", answer_schema=schema))
    assert reader.read('{"coat": "red"}') == {"coat": "red"}
    assert reader.read('```json\n{"coat": "red"}\n```') == {"coat": "red"}
    for text, kind in (("red", "not JSON"), ("", "empty answer"), ("{}", "not by the schema")):
        with pytest.raises(RequestError) as error:
            reader.read(text)
        assert error.value.kind == kind
    with pytest.raises(RequestError, match=r"\.coat: 3 is not of type 'string'"):
        reader.read('{"coat": 3}')
    assert Reader(options()).read("{") is None
    with pytest.raises(PromptError, match="answer_schema is no JSON Schema"):
        Reader(options(answer="json", answer_schema={"type": "thing"}))


# --- requests ---------------------------------------------------------------------------------------------------------


class Scripted:
    """A client that answers by script: texts and errors, the last one for ever; it notes when it was asked."""

    def __init__(self, *script):
        self.script, self.texts = list(script), []
        self.open = threading.Event()
        self.open.set()

    def ask(self, text, pictures):
        self.texts.append(text)
        self.open.wait(10)
        says = self.script[0] if len(self.script) == 1 else self.script.pop(0)
        if isinstance(says, Exception):
            raise says
        return Reply(says, "vl", 100, False)


@pytest.fixture
def make():
    made = []

    def asker(client, failures=None, **values):
        opts = options(**values)
        told = failures.append if failures is not None else lambda text: None
        made.append(Asker(client, Reader(opts).read, opts, "prompt", told, backoff=0.01))
        return made[-1]

    yield asker
    for one in made:
        one.stop()


def counts(asker):
    return tuple(getattr(asker.counts, name) for name in asker.counts.__slots__)


def test_answers_come_back(make):
    asker = make(Scripted("red"))
    for n in range(5):
        asker.give(question(n))
    assert asker.finish(10)
    assert counts(asker) == (5, 5, 0, 0, 0)
    results = asker.results()
    assert sorted(q.track_id for q, _ in results) == [0, 1, 2, 3, 4]
    assert {a.text for _, a in results} == {"red"}
    assert asker.results() == []


def test_failures_that_pass_are_tried_again(make, caplog):
    client = Scripted(RequestError("HTTP 500", "HTTP 500"), RequestError("time-out", "no answer within 5 s"), "red")
    asker = make(client, retries=2)
    asker.give(question())
    assert asker.finish(10)
    assert (counts(asker), len(client.texts)) == ((1, 1, 0, 0, 0), 3)
    assert caplog.text.count("HTTP 500: another attempt follows") == 1


def test_failures_are_counted_and_named_once(make, caplog):
    client = Scripted(RequestError("HTTP 500", "HTTP 500: out of memory"))
    asker = make(client, retries=1, concurrent=1)
    for n in range(3):
        asker.give(question(n))
    assert asker.finish(10)
    assert (counts(asker), len(client.texts)) == ((3, 0, 3, 0, 0), 6)
    assert [a for _, a in asker.results()] == [None] * 3
    assert caplog.text.count("source 'door', track 0: no answer: HTTP 500: out of memory") == 1
    assert "track 1" not in caplog.text


def test_what_does_not_pass_is_not_tried_again_and_the_others_pause(make):
    client = Scripted(RequestError("HTTP 401", "HTTP 401", passing=False), "red")
    asker = make(client, concurrent=1)
    asker.give(question(1))
    asker.give(question(2))
    wait_for(lambda: asker.counts.failed == 1)
    assert not asker.finish(0.1)
    assert len(client.texts) == 1


def test_retry_after_is_honoured_by_all(make):
    client = Scripted(RequestError("HTTP 429", "HTTP 429", retry_after=120.0), "red")
    asker = make(client, concurrent=1)
    asker.give(question(1))
    wait_for(lambda: len(client.texts) == 1)
    asker.give(question(2))
    assert not asker.finish(0.1)
    assert len(client.texts) == 1


def test_stop_on_the_first_failure(make):
    failures = []
    asker = make(
        Scripted(RequestError("HTTP 404", "HTTP 404: no such model", passing=False)), failures, on_error="stop"
    )
    asker.give(question(3))
    wait_for(lambda: bool(failures))
    assert failures == ["prompt: source 'door', track 3: HTTP 404: no such model"]


def test_counts_add_up_whatever_the_endpoint_does(make):
    chance = np.random.default_rng(0)
    wrongs = [
        RequestError("HTTP 429", "HTTP 429", retry_after=0.001),
        RequestError("HTTP 500", "HTTP 500", retry_after=0.0),
        RequestError("HTTP 400", "HTTP 400", passing=False, retry_after=0.0),
    ]
    script = [wrongs[n] if n < 3 else "" if n == 3 else "red" for n in chance.integers(0, 8, 2000)]
    client, results = Scripted(*script), []
    client.open.clear()
    asker = make(client, retries=1, queue=20, concurrent=8)
    for n in range(400):
        if n == 100:  # more than there is room for
            client.open.set()
        asker.give(question(n))
        results += asker.results()
    assert asker.finish(20)
    results += asker.results()
    assert sorted(q.track_id for q, _ in results) == list(range(400))
    assert not any(q.pictures for q, _ in results)  # answers are kept, pictures are not
    asked, answered, failed, dropped, _ = counts(asker)
    assert asked == answered + failed + dropped == 400
    assert sum(answer is not None for _, answer in results) == answered
    assert min(answered, failed, dropped) > 0


@pytest.mark.parametrize("overflow, kept", [("drop-oldest", [0, 3, 4]), ("drop-newest", [0, 1, 2])])
def test_questions_for_which_there_is_no_room(make, caplog, overflow, kept):
    client = Scripted("red")
    client.open.clear()
    asker = make(client, queue=2, concurrent=1, overflow=overflow)
    asker.give(question(0))
    wait_for(lambda: len(client.texts) == 1)
    for n in range(1, 5):
        asker.give(question(n))
    client.open.set()
    assert asker.finish(10)
    assert counts(asker) == (5, 3, 0, 2, 0)
    assert [q.track_id for q, a in asker.results() if a] == kept
    assert caplog.text.count("some are dropped") == 1


def test_questions_wait_for_the_budget_and_are_counted(make):
    client = Scripted("red")
    asker = make(client, requests_per_minute=2)
    for n in range(5):
        asker.give(question(n))
    wait_for(lambda: asker.counts.answered == 2)
    assert not asker.finish(0.1)
    assert counts(asker) == (5, 2, 0, 0, 3)
    asker.stop()
    assert counts(asker) == (5, 2, 0, 3, 3)


def test_who_waits_at_the_end_is_let_go(make):
    client = Scripted("red")
    client.open.clear()
    asker = make(client)
    asker.give(question())
    threading.Timer(0.05, asker.abandon).start()
    assert asker.finish(30)
    asker.stop()
    assert counts(asker) == (1, 0, 0, 1, 0)
    client.open.set()


# --- the endpoint -----------------------------------------------------------------------------------------------------


def ask(*script, key="", **values):
    with VlmServer(*script) as server:
        client = ChatClient(options(endpoint=server.url, **values), key, {"temperature": 0})
        try:
            return client.ask("Who?", [encoded(np.zeros((8, 8, 3), np.uint8), 64, 0)]), server.asked[0]
        finally:
            client.close()


def test_a_question_as_the_endpoint_gets_it():
    reply, asked = ask(Says("  a person ", finish_reason="length"), key="sk-1", max_tokens=50)
    assert reply == Reply("a person", "stand-in-vl", 120, True)
    assert (asked.text, asked.pictures[0].shape, asked.headers["Authorization"]) == ("Who?", (8, 8, 3), "Bearer sk-1")
    assert {k: asked.body[k] for k in ("model", "max_tokens", "temperature")} == {
        "model": "m", "max_tokens": 50, "temperature": 0,
    }  # fmt: skip
    _, asked = ask(Says("{}"), answer="json", answer_schema={"type": "object"}, attribute="new coat")
    assert asked.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "new_coat", "schema": {"type": "object"}},
    }
    assert "Authorization" not in asked.headers
    assert "max_tokens" not in asked.body


@pytest.mark.parametrize(
    "says, kind, passing, retry_after",
    [
        (Says("slow down", status=429, headers={"Retry-After": "7"}), "HTTP 429", True, 7),
        (Says("broken", status=500), "HTTP 500", True, None),
        (Says("wrong key", status=401), "HTTP 401", False, None),
        (Says("bad picture", status=400), "HTTP 400", False, 0),
        (Says(status=307, headers={"Location": "http://elsewhere/"}), "HTTP 307", False, None),
        (Says(body=b"<html>hello"), "not a chat completion", True, None),
        (Says(body=b'{"choices": []}'), "not a chat completion", True, None),
        (Says(hang_up=True), "connection", True, None),
        (Says(body=b"[" * (3 << 20)), "too long", False, 0),
    ],
)
def test_what_endpoints_do_wrong(says, kind, passing, retry_after):
    with pytest.raises(RequestError) as error:
        ask(says)
    assert (error.value.kind, error.value.passing, error.value.retry_after) == (kind, passing, retry_after)


def test_an_endpoint_that_never_answers_or_is_not_there():
    with pytest.raises(RequestError, match=r"no answer within 0.1 s"):
        ask(Says(slow=30), timeout=0.1)
    with pytest.raises(RequestError) as error:
        ChatClient(options(endpoint="http://127.0.0.1:9/v1")).ask("Who?", [])
    assert (error.value.kind, error.value.passing) == ("no connection", True)


def test_the_time_out_is_for_the_whole_answer():
    with pytest.raises(RequestError, match=r"no whole answer within 1 s"):
        ask(Says(trickle=0.05), timeout=1.0)


def test_a_key_that_the_endpoint_repeats_is_not_shown():
    with pytest.raises(RequestError, match=r"HTTP 401: Incorrect key \*\*\*, sorry"):
        ask(Says("Incorrect key sk-very-secret, sorry", status=401), key="sk-very-secret")


def test_retry_after_as_a_date():
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT", now_s=1445412470.0) == 10
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT", now_s=1445412490.0) == 0
    assert retry_after_s(None) is None
