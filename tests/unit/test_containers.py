"""What the container files promise, as far as it can be read from them: no engine to build images is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = ("Dockerfile", "Dockerfile.cpu")


def instructions(name: str) -> list[tuple[str, str]]:
    """(instruction, its text) in order, comments gone and lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in lines if line)]


def sent() -> list[str]:
    """What of the repository is sent to the build."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert lines[0] == "*"
    return [line.removeprefix("!") for line in lines if line.startswith("!")]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_runs_as_somebody_who_is_not_root(name: str) -> None:
    steps = instructions(name)
    user = next(place for place, (word, _) in enumerate(steps) if word == "USER")
    assert int(steps[user][1]) >= 10000, "a number: names cannot be seen from outside (runAsNonRoot)"
    later = {word for word, _ in steps[user + 1 :]}
    assert later == {"WORKDIR", "VOLUME", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


@pytest.mark.parametrize("name", DOCKERFILES)
def test_nothing_is_fetched_or_written_outside_of_tmp_and_out_at_the_start(name: str) -> None:
    steps = dict(instructions(name))
    assert steps["ENTRYPOINT"] == '["gstorch"]'
    assert steps["VOLUME"] == f'["{steps["WORKDIR"]}"]' == '["/out"]'
    environment = dict(pair.split("=", 1) for pair in steps["ENV"].split())
    assert environment["HOME"] == "/tmp"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_is_copied_and_called_is_sent_to_the_build(name: str) -> None:
    copied = [text.split()[:-1] for word, text in instructions(name) if word in ("COPY", "ADD")]
    assert copied == [["."]]
    assert [path for path in sent() if not (ROOT / path).exists()] == []
    (compiled,) = re.findall(r"compileall -q ([\w ]+?) &&", " ".join(text for _, text in instructions(name)))
    for path in (*compiled.split(), "tools/setup.sh", "README.md", "pyproject.toml"):
        assert path.partition("/")[0] in sent()
        assert (ROOT / path).exists()


@pytest.mark.parametrize("name", DOCKERFILES)
def test_packages_of_the_program_are_sent(name: str) -> None:
    """A new package at the top must be sent to the build as well."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"app", "pipelines", "elements"}
    assert packages - {"tests", "benchmarks"} <= set(sent())


def test_the_parts_of_the_composition() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"camera", "gstorch", "broker"}
    for service in services.values():
        assert service["read_only"] is True
    for name in ("camera", "gstorch"):
        assert services[name]["build"]["dockerfile"] in DOCKERFILES
    assert services["gstorch"]["depends_on"] == {"camera": {"condition": "service_healthy"}}
    definition = services["gstorch"]["command"][1].removeprefix("/opt/gstorch/")
    text = (ROOT / definition).read_text(encoding="utf-8")
    for variable in services["gstorch"]["environment"]:
        assert f"${{{variable}:-" in text, f"nobody reads {variable}"
    module = services["camera"]["entrypoint"][2]
    assert (ROOT / f"{module.replace('.', '/')}.py").exists()
