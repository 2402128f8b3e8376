"""``gstorch doctor``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).resolve().parent.parent
SETUP = "run `make setup` in the project's folder"
ELEMENTS = {  # Debian's and Ubuntu's package: what is used of it
    "libgstreamer1.0-0": ("queue", "tee", "capsfilter", "filesink", "fakesink"),
    "gstreamer1.0-plugins-base": ("uridecodebin", "videoconvert"),
    "gstreamer1.0-plugins-good": ("qtdemux", "matroskademux", "mp4mux", "videoflip", "rtspsrc", "rtph264depay"),
    "gstreamer1.0-plugins-bad": ("h264parse", "h265parse", "tsdemux"),
    "gstreamer1.0-libav": ("avdec_h264", "avdec_h265", "avdec_mpeg4"),
}
SOFTWARE_DECODERS = "gstreamer1.0-libav"
ENCODERS = {  # codec: any one of these elements, with their packages; only for outputs with that codec
    "h264": {"x264enc": "gstreamer1.0-plugins-ugly", "openh264enc": "gstreamer1.0-plugins-bad"},
    "h265": {"x265enc": "gstreamer1.0-plugins-bad"},
}
SYSTEM_PATHS = ("GST_PLUGIN_SYSTEM_PATH_1_0", "GST_PLUGIN_SYSTEM_PATH")
REGISTRIES = ("GST_REGISTRY_1_0", "GST_REGISTRY")
COMMAND_TIMEOUT_S = 60

Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``level`` is ``ok``, ``note`` (works, with less) or ``bad``; ``fix`` says what to do."""

    level: str
    what: str
    state: str
    fix: str = ""


def doctor() -> None:
    """Check this machine: versions, elements, plugin path, registry cache, models, GPU. Exit code 1: it cannot run."""
    findings = list(examine(dict(os.environ)))
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        typer.echo(f"{finding.level:<4}  {finding.what:<{width}}  {finding.state}")
        if finding.fix:
            typer.echo(f"      {'':<{width}}  -> {finding.fix}")
    if any(finding.level == "bad" for finding in findings):
        raise typer.Exit(1)


def examine(environ: Environ) -> Iterator[Finding]:
    """Every check in turn; a check that breaks is a finding too.

    Args:
        environ: the environment of the shell; this process's own may be changed while its elements are registered.
    """
    checks: list[Callable[[Environ], Iterator[Finding]]] = [_python, _packages, _gstreamer]
    if _can_import_gstreamer():
        checks += [_elements, _encoders, _registry, _runtime, _launch]
    for check in (*checks, _models, _gpu, _brokers):
        try:
            yield from check(environ)
        except Exception as error:
            yield Finding("bad", check.__name__.strip("_"), f"{type(error).__name__}: {error}", SETUP)


# --- versions ---------------------------------------------------------------------------------------------------------


def _python(_environ: Environ) -> Iterator[Finding]:
    level = "ok" if sys.version_info >= (3, 11) else "bad"
    yield Finding(level, "python", f"{platform.python_version()} ({sys.executable})", "" if level == "ok" else SETUP)


def _packages(_environ: Environ) -> Iterator[Finding]:
    """What pyproject.toml asks for, without the extras."""
    from packaging.requirements import Requirement

    wanted = [Requirement(line) for line in _requirements()]
    for requirement in sorted(wanted, key=lambda r: r.name):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = installed_version(requirement.name)
        except PackageNotFoundError:
            yield Finding("bad", requirement.name, "not installed", SETUP)
            continue
        if requirement.specifier.contains(version, prereleases=True):
            yield Finding("ok", requirement.name, version)
        else:
            yield Finding("bad", requirement.name, f"{version}, but {requirement.specifier} is needed", SETUP)


def _requirements() -> list[str]:
    """Of the installed program; of the source tree, where it is run from there without having been installed."""
    try:
        return requires("gstorch") or []
    except PackageNotFoundError:
        content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        return list(content["project"]["dependencies"])


def _can_import_gstreamer() -> bool:
    try:
        importlib.import_module("elements.base")
    except (ImportError, ValueError):
        return False
    return True


def _gstreamer(_environ: Environ) -> Iterator[Finding]:
    try:
        import gi

        from elements.base import Gst
    except (ImportError, ValueError) as error:
        yield Finding("bad", "gstreamer", str(error), f"this Python cannot see Debian's python3-gi: {SETUP}")
        return
    Gst.init(None)
    state = f"{Gst.version_string().removeprefix('GStreamer ')}, PyGObject {gi.__version__}"
    if Gst.version() < (1, 22):
        yield Finding("bad", "gstreamer", f"{state}: 1.22 or later is needed", "use Debian 12, Ubuntu 24.04 or later")
    else:
        yield Finding("ok", "gstreamer", state)


# --- elements ---------------------------------------------------------------------------------------------------------


def _elements(environ: Environ) -> Iterator[Finding]:
    for package, factories in ELEMENTS.items():
        missing = [factory for factory in factories if not _exists(factory)]
        if missing and package == SOFTWARE_DECODERS and _gpu_decodes():
            yield Finding("note", package, f"missing: {', '.join(missing)}; the GPU decodes what it can")
        elif missing:
            fix = _how_to_get(package, environ)
            yield Finding("bad", package, f"missing: {', '.join(missing)}", fix)
        else:
            yield Finding("ok", package, ", ".join(factories))


def _gpu_decodes() -> bool:
    from pipelines.runtime import load_runtime

    return load_runtime().gpu_decoding


def _encoders(_environ: Environ) -> Iterator[Finding]:
    for codec, backends in ENCODERS.items():
        found = next((factory for factory in backends if _exists(factory)), None)
        if found:
            yield Finding("ok", f"{codec} encoder", found)
        else:
            factory, package = next(iter(backends.items()))
            state = f"{factory} is missing: no video output with codec {codec}"
            yield Finding("note", f"{codec} encoder", state, f"apt-get install {package}")


def _exists(factory: str) -> bool:
    from elements.base import Gst

    return Gst.ElementFactory.find(factory) is not None


def _how_to_get(package: str, environ: Environ) -> str:
    """What to do about elements of ``package`` that are not found."""
    hidden = next((name for name in SYSTEM_PATHS if name in environ), None)
    if hidden:
        return f"unset {hidden}, which is '{environ[hidden]}' and hides the installed plugins"
    if _is_installed(package):
        return f"{package} is installed: rm '{_registry_file(environ)}', GStreamer's cache, and try again"
    return f"apt-get install {package}"


def _is_installed(package: str) -> bool:
    dpkg = shutil.which("dpkg-query")
    if dpkg is None:
        return False
    command = [dpkg, "-W", "-f=${db:Status-Abbrev}", package]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    return answer.stdout.startswith("ii")


def _registry_file(environ: Environ) -> Path:
    named = next((environ[name] for name in REGISTRIES if environ.get(name)), None)
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "gstreamer-1.0" / f"registry.{platform.machine()}.bin"


def _registry(environ: Environ) -> Iterator[Finding]:
    """GStreamer's cache of what each plugin holds; a plugin that failed to load once stays out until it changes."""
    from elements.base import Gst

    file = _registry_file(environ)
    plugins = Gst.Registry.get().get_plugin_list()
    refused = [p for p in plugins if p.flags & Gst.PluginFlags.BLACKLISTED]
    if refused:
        names = ", ".join(sorted(plugin.get_filename() or plugin.get_name() for plugin in refused))
        fix = f"ldd says which library is missing; install it, rm '{file}' and try again"
        yield Finding("note", "registry cache", f"{file}; plugins that could not be loaded: {names}", fix)
    elif file.exists() and not os.access(file, os.W_OK) and _is_outdated(file, plugins):
        state = f"{file} is older than the plugins and cannot be written: every start is slow"
        yield Finding("note", "registry cache", state, f"chown it to {_user()}")
    else:
        yield Finding("ok", "registry cache", str(file))


def _is_outdated(registry: Path, plugins: list[Any]) -> bool:
    """Whether a plugin changed since; in a container the registry is made once and read-only."""
    files = [Path(name) for plugin in plugins if (name := plugin.get_filename())]
    return any(file.exists() and file.stat().st_mtime > registry.stat().st_mtime for file in files)


def _user() -> str:
    return Path.home().name


def _runtime(_environ: Environ) -> Iterator[Finding]:
    from pipelines.runtime import RuntimeUnavailableError, load_runtime

    try:
        runtime = load_runtime()
    except RuntimeUnavailableError as error:
        yield Finding("bad", "runtime", str(error))
        return
    if runtime.portable or not runtime.stand_ins:
        yield Finding("ok", "runtime", runtime.describe())
    else:
        fix = "install the whole DeepStream SDK, or set runtime.prefer to portable"
        yield Finding("note", "runtime", f"{runtime.describe()}; not tried together by us", fix)


# --- gst-launch -------------------------------------------------------------------------------------------------------


def _launch(environ: Environ) -> Iterator[Finding]:
    """Whether GStreamer's own tools find pyinfer: in this shell if it is set up for that, and after elements/env.sh."""
    if shutil.which("gst-inspect-1.0", path=environ.get("PATH")) is None:
        yield Finding("note", "gst-launch", "gst-inspect-1.0 is missing", "apt-get install gstreamer1.0-tools")
        return
    yield _plugin_path(environ)
    source = f'source "{ROOT}/elements/env.sh" >/dev/null'
    if _finds_pyinfer(environ, before=source):
        yield Finding("ok", "gst-launch", f"finds pyinfer after: source {ROOT}/elements/env.sh")
        return
    packages = "gstreamer1.0-python3-plugin-loader libpython3-dev"
    missing = [package for package in packages.split() if not _is_installed(package)]
    forget = f"rm -f '{ROOT}'/.venv/gst-registry*.bin"  # GStreamer remembers that the loader could not be opened
    fix = f"apt-get install {' '.join(missing)} && {forget}" if missing else f"{forget} and try again"
    yield Finding("note", "gst-launch", "GStreamer's Python loader does not find pyinfer", fix)


def _plugin_path(environ: Environ) -> Finding:
    path = environ.get("GST_PLUGIN_PATH", "")
    folders = [Path(part) for part in path.split(":") if part]
    absent = [str(folder) for folder in folders if not folder.is_dir()]
    if absent:
        fix = f"source {ROOT}/elements/env.sh, or correct GST_PLUGIN_PATH"
        return Finding("note", "plugin path", f"{path}: no folder {', '.join(absent)}", fix)
    if ROOT / "elements" not in [folder.resolve() for folder in folders]:
        return Finding(
            "ok", "plugin path", f"{path or 'not set'}; gst-launch needs {ROOT}/elements in it, gstorch does not"
        )
    if _finds_pyinfer(environ):
        return Finding("ok", "plugin path", f"{path}; gst-launch finds pyinfer in this shell")
    with tempfile.TemporaryDirectory() as folder:
        fresh = {name: value for name, value in environ.items() if name not in REGISTRIES}
        stale = _finds_pyinfer({**fresh, "GST_REGISTRY": f"{folder}/registry.bin"})
    if stale:
        fix = f"rm '{_registry_file(environ)}', or source {ROOT}/elements/env.sh, which uses a registry of its own"
        return Finding("note", "plugin path", f"{path}; the registry cache is stale: it remembers no pyinfer", fix)
    return Finding("note", "plugin path", f"{path}; pyinfer is not found", f"source {ROOT}/elements/env.sh")


def _finds_pyinfer(environ: Environ, before: str = ":") -> bool:
    """Whether gst-inspect-1.0 knows pyinfer in a shell with ``environ`` that has run ``before``."""
    script = f"{before} && exec gst-inspect-1.0 --exists pyinfer"
    answer = subprocess.run(
        ["bash", "-c", script], capture_output=True, timeout=COMMAND_TIMEOUT_S, env=dict(environ), check=False
    )
    return answer.returncode == 0


# --- models and GPU ---------------------------------------------------------------------------------------------------


def _models(_environ: Environ) -> Iterator[Finding]:
    from elements.inference.config import ModelConfig
    from elements.inference.errors import ModelError
    from elements.inference.model import open_model

    for path in sorted((ROOT / "configs" / "models").glob("*.onnx")):
        try:
            model = open_model(ModelConfig(path=str(path)))
            model.load()
            model.close()
        except ModelError as error:
            yield Finding("bad", f"model {path.stem}", str(error), f"git checkout -- '{path}'")
        else:
            yield Finding("ok", f"model {path.stem}", f"loads ({path.stat().st_size / 2**20:.1f} MiB)")


def _brokers(_environ: Environ) -> Iterator[Finding]:
    """The client libraries that message stages need, each for one kind of broker."""
    from pipelines.delivery.broker import MissingLibraryError, broker_class
    from pipelines.delivery.connection import SCHEMES

    packages = packages_distributions()
    for broker in SCHEMES:
        try:
            library = broker_class(broker).LIBRARY
        except MissingLibraryError:
            fix = f"cd {ROOT} && .venv/bin/python -m pip install -e '.[{broker}]'"
            yield Finding("note", f"broker {broker}", "no client library; only message stages need it", fix)
            continue
        if library:
            names = packages.get(library, [library])
            yield Finding("ok", f"broker {broker}", ", ".join(f"{name} {installed_version(name)}" for name in names))


def _gpu(_environ: Environ) -> Iterator[Finding]:
    """What of the engines can use a GPU, and whether there is one."""
    onnxruntime = importlib.import_module("onnxruntime")
    providers = [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    yield Finding("ok", "onnxruntime on", ", ".join(providers))
    engines = ["onnx"] if "CUDA" in providers else []
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        on_cuda = torch.cuda.is_available()
        yield Finding("ok", "torch on", f"{'CUDA, ' if on_cuda else ''}CPU ({torch.__version__})")
        engines += ["torch"] if on_cuda else []
    if importlib.util.find_spec("tensorrt") is not None and "torch" in engines:
        engines.append("tensorrt")
    smi = shutil.which("nvidia-smi")
    if smi is None:
        yield Finding("note", "gpu", "no NVIDIA driver; everything runs on the CPU")
        return
    query = [smi, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    if answer.returncode:
        said = (answer.stdout + answer.stderr).strip().splitlines()
        yield Finding("note", "gpu", said[0] if said else "nvidia-smi fails", "repair NVIDIA's driver, or reboot")
    elif not engines:
        fix = f"{ROOT}/.venv/bin/pip uninstall -y onnxruntime && {ROOT}/.venv/bin/pip install onnxruntime-gpu"
        state = f"{answer.stdout.strip()}, not used for inference: onnxruntime and torch here are for the CPU"
        yield Finding("note", "gpu", state, f"{fix}; or install torch for CUDA")
    else:
        yield Finding("ok", "gpu", f"{answer.stdout.strip()}; used by engine {', '.join(engines)}")
