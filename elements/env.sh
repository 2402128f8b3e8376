# Source this file (bash or zsh) to use gstorch's elements in this shell, for example with gst-launch-1.0.
#
# It activates the repository's .venv and points GStreamer at the elements: pyinfer, and a stand-in for each of NVIDIA's
# elements that this machine lacks. The registry file is our own and named after what it was made from: GStreamer would
# otherwise remember for ever that an element could not be imported once.

if [ -n "${ZSH_VERSION:-}" ]; then
    eval '_gstorch_file="${(%):-%x}"'
else
    _gstorch_file="${BASH_SOURCE[0]}"
fi
_gstorch_root="$(cd "$(dirname "$_gstorch_file")/.." && pwd)"

_gstorch_setup() {
    local venv="$_gstorch_root/.venv" elements="$_gstorch_root/elements" name real="" stand_ins=0 key part path=""
    if [ ! -r "$venv/bin/activate" ]; then
        echo "gstorch: $venv is missing: run 'make' in $_gstorch_root first" >&2
        return 1
    fi
    . "$venv/bin/activate"

    # Look for NVIDIA's elements without ours in the way
    while IFS= read -r part; do
        case "$part" in "" | "$elements" | "$elements/"*) ;; *) path="$path:$part" ;; esac
    done <<EOF
$(printf '%s' "${GST_PLUGIN_PATH:-}" | tr ':' '\n')
EOF
    path="${path#:}"
    unset GST_REGISTRY
    for part in "$elements"/portable/python/_el_*.py; do
        name="$(basename "$part" .py)"
        name="${name#_el_}"
        if GST_PLUGIN_PATH="$path" gst-inspect-1.0 --exists "$name" 2>/dev/null; then
            real="$real $name"
        else
            stand_ins=$((stand_ins + 1))
        fi
    done
    export GSTORCH_REAL_ELEMENTS="${real# }"
    export GST_PLUGIN_PATH="$elements:$elements/portable${path:+:$path}"
    # GStreamer's Python loader puts only one of its folders on Python's path, which may be one of the user's
    case ":${PYTHONPATH:-}:" in
        *":$elements/python:$elements/portable/python:"*) ;;
        *) export PYTHONPATH="$elements/python:$elements/portable/python${PYTHONPATH:+:$PYTHONPATH}" ;;
    esac

    key="$({
        "$venv/bin/python" -c 'import os, site, sys; print(sys.version, [os.stat(p).st_mtime_ns for p in site.getsitepackages() if os.path.isdir(p)])'
        find "$elements" -name '*.py' -exec ls -ln {} +
        echo "$GSTORCH_REAL_ELEMENTS $GST_PLUGIN_PATH"
    } | cksum | cut -d ' ' -f 1)"
    export GST_REGISTRY="$venv/gst-registry-$key.bin"
    find "$venv" -maxdepth 1 -name 'gst-registry-*.bin' ! -name "gst-registry-$key.bin" -exec rm -f {} +
    echo "gstorch: $venv active; pyinfer and $stand_ins stand-ins for gst-launch-1.0${real:+; installed by NVIDIA:$real}"
}
_gstorch_setup
unset -f _gstorch_setup
unset _gstorch_file _gstorch_root
