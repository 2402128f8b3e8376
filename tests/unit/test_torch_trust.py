"""Files of torch that could do more than compute are loaded only when they are trusted."""

import re
import zipfile

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from elements.inference.errors import ModelError  # noqa: E402
from tests.pictures import assert_finds, frame_of  # noqa: E402
from tests.torch_files import exported, loaded  # noqa: E402
from tests.torch_models import Finder  # noqa: E402


def test_a_pickled_module_needs_trust(tmp_path):
    torch.save(Finder(), tmp_path / "m.pt")
    with pytest.raises(ModelError, match=r"pickled module, not TorchScript.*set trust: true"):
        loaded(tmp_path / "m.pt")
    assert_finds(loaded(tmp_path / "m.pt", trust=True).infer([frame_of(641, 359)])[0], 641, 359)


def test_an_exported_program_needs_trust(tmp_path):
    """Torch evaluates Python that it finds in one: expressions of sizes, guards, pickles."""
    path, changed, trace = exported(tmp_path, most=8), tmp_path / "changed.pt2", tmp_path / "was run"
    code = f"open({str(trace)!r}, 'w')".encode()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            target.writestr(name, re.sub(rb'"expr_str": "[^"]*"', b'"expr_str": "%b"' % code, source.read(name)))
    with pytest.raises(ModelError, match=r"exported program, which can run any code.*set trust: true"):
        loaded(changed, input_size=None)
    assert not trace.exists()
    with pytest.raises(ModelError, match="cannot load the exported program"):
        loaded(changed, input_size=None, trust=True)
    assert trace.exists(), "then this test shows nothing: is a check enough in this version of torch?"


class Writer(torch.nn.Module):
    def forward(self, image):
        torch.save(image, "was-run")
        return image


@pytest.fixture
def writer(monkeypatch):
    monkeypatch.setattr(torch, "save", torch.serialization.save)  # ultralytics, once imported, has its own there
    return torch.jit.script(Writer())


def test_torchscript_that_writes_files_needs_trust(writer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer.save("m.pt")
    with pytest.raises(ModelError, match=r"code/__torch__.*\.py' names 'save', which can .*files.*set trust: true"):
        loaded("m.pt")
    assert not (tmp_path / "was-run").exists()
    with pytest.raises(ModelError, match="no layout known"):
        loaded("m.pt", trust=True)
    assert (tmp_path / "was-run").exists()


HIDDEN = {
    "a line's break": b"torch.save\\\n(image",
    "a comment": b"(torch.save # of\n)(image",
    "another name": b"f = torch.save\n    f(image",
    "another name of torch": b"t = torch\n    t.save(image",
    "getattr": b'getattr(torch, "save")(image',
    "getattr of two texts": b'getattr(torch, "sa" "ve")(image',
    "getattr of an escape": b'getattr(torch, "\\163ave")(image',
    "getattr in getattr": b'getattr(getattr(torch, "sa" "ve"), "__call__")(image',
}


@pytest.mark.parametrize("call", HIDDEN.values(), ids=HIDDEN)
def test_torchscript_that_hides_what_it_calls_needs_trust(writer, tmp_path, call):
    writer.save(tmp_path / "m.pt")
    with zipfile.ZipFile(tmp_path / "m.pt") as plain, zipfile.ZipFile(tmp_path / "hidden.pt", "w") as hidden:
        for member in plain.infolist():
            hidden.writestr(member, plain.read(member).replace(b"torch.save(image", call))
    with pytest.raises(ModelError, match=r"code/__torch__.*\.py' (names|makes up) .*set trust: true"):
        loaded(tmp_path / "hidden.pt")


def test_torchscript_may_have_modules_whose_names_are_numbers(tmp_path):
    """Which it reaches with getattr."""
    network = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1)), torch.nn.ReLU())
    torch.jit.trace(network, torch.zeros(1, 3, 32, 32)).save(tmp_path / "m.pt")
    with pytest.raises(ModelError, match="no layout known"):
        loaded(tmp_path / "m.pt")
