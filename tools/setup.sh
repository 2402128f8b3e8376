#!/usr/bin/env bash
# Sets up everything on Debian 12 or later or Ubuntu 24.04: system packages (root or sudo), .venv, the program.
# It can be run again at any time, also after it was interrupted.
#
#   tools/setup.sh            everything
#   tools/setup.sh runtime    without what tests and gst-launch-1.0 need, for containers
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
  gstreamer1.0-plugins-ugly gstreamer1.0-libav gir1.2-gstreamer-1.0 gir1.2-gst-plugins-base-1.0
  python3-gi python3-gst-1.0 python3-venv
  libgl1                                  # OpenCV's wheel links to it
  gir1.2-gst-rtsp-server-1.0              # tools/rtsp_camera.py and tests: an RTSP camera
)
extras="[brokers,prompt]"
if [ "${1:-}" != runtime ]; then
  packages+=(
    gstreamer1.0-python3-plugin-loader    # pyinfer in gst-launch-1.0
    libpython3-dev                        # which opens libpython3.x.so, from Debian 13 on by this name
    ffmpeg                                # tests: an independent judge of files
  )
  extras="[dev]"
fi

command -v dpkg-query >/dev/null || {
  echo "This machine has no dpkg: set-up knows Debian and Ubuntu only. What it would install: ${packages[*]}" >&2
  exit 1
}

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done

# Runs a command without output, unless it fails
quietly() {
  local output
  output="$("$@" 2>&1)" || {
    printf '%s\n%s\n' "$output" "Failed: $*" >&2
    exit 1
  }
}

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo)
    else
      echo "System packages are missing. Run this once, then the same make command again:" >&2
      echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
  fi
  echo "Installing ${#missing[@]} system package(s) ..."
  quietly "${as_root[@]}" apt-get update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
fi

# GStreamer's Python modules are Debian's, so the venv must be of Debian's Python and see its packages.
whole='import gi, pip, sys; sys.exit(sys.base_prefix != "/usr" or sys.prefix == sys.base_prefix)'
if ! .venv/bin/python -c "$whole" 2>/dev/null; then
  echo "Creating .venv ..."
  /usr/bin/python3 -m venv --clear --system-site-packages .venv
fi
echo "Installing Python packages ..."
.venv/bin/python -m pip install -q --disable-pip-version-check -e ".$extras"
if [ "$extras" = "[dev]" ] && [ "$(uname -m)" = x86_64 ]; then
  # Tests only: DeepStream's metadata library. Without what only the wheel's decoder needs (150 MB).
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps nvidia-deepstream-videodecode-cu13==9.0.2 ||
    echo "Tests on DeepStream's metadata library will be skipped." >&2
fi
rm -f .venv/gst-registry*.bin
echo "Ready: .venv/bin/gstorch (see .venv/bin/gstorch doctor)"
