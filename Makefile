# make demo, make test and make lint set up what they need; a second call is quick and silent.
PYTHON := .venv/bin/python
# The tests start the program hundreds of times: its modules are compiled once
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-services lint bench clean

setup: .venv/.ready
	@:

.venv/.ready: pyproject.toml tools/setup.sh
	@tools/setup.sh
	@touch $@

demo: .venv/.ready
	@$(PYTHON) -m tools.demo

test: .venv/.ready
	@$(PYTHON) -m pytest -q -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# Mosquitto, RabbitMQ, Redis and NATS, for tests that are skipped without them
test-services:
	@tools/test_services.sh

lint: .venv/.ready
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

bench: .venv/.ready
	@$(PYTHON) -m benchmarks.compare

clean:
	@rm -rf .venv out build *.egg-info
