"""Each broker runs once per session, with a consumer that sees everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.delivery.services import SERVICES, Running


@pytest.fixture(scope="session", params=SERVICES)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A broker that is not started yet."""
    broker = Running(request.param, tmp_path_factory.mktemp(request.param))
    try:
        yield broker
    finally:
        broker.stop()
