# The Debian packages that this project needs, and how they get onto the machine. To be sourced.

# Debian 12 has two Boosts, and the one without a number is too old. From 1.82 on Boost.URL is a library. clang-format 14
# decides how files are formatted; Debian 13 has only newer ones.
boost_packages=(libboost-dev libboost-url-dev) format_packages=()
if grep -qsx 'VERSION_CODENAME=bookworm' /etc/os-release; then boost_packages=(libboost1.81-dev) format_packages=(clang-format-14 clang-tidy-14); fi
build_packages=(
  ca-certificates cmake g++ "${boost_packages[@]}" libbrotli-dev libcli11-dev libcurl4-openssl-dev libpq-dev libprotozero-dev libre2-dev libspdlog-dev libsqlite3-dev libssl-dev
  libtomlplusplus-dev libxxhash-dev libzstd-dev ninja-build nlohmann-json3-dev
  pkg-config zlib1g-dev)
package_packages=(cmake dpkg-dev file python3-hatchling)
# With sanitizers clang compiles faster than g++.
test_packages=(abigail-tools chromium clang curl "${format_packages[@]}" dbus-daemon faketime lld libclang-rt-dev ed fish fuse3 git groff-base libfuse3-dev libgtest-dev libnotify-bin lintian make minisign mmdebstrap mypy postgresql python3 python3-aiohttp python3-aiosmtpd python3-dbus python3-gi python3-hatchling python3-httpx python3-ipykernel python3-jsonschema python3-jupyter-client python3-pip python3-pytest python3-pytest-xdist python3-requests python3-venv python3-yaml rpm ruby sqlite3 vim-tiny zsh)
docs_packages=(codespell doxygen furo python3-myst-parser python3-sphinx python3-sphinx-copybutton python3-yaml)
fuzz_packages=(clang lld libclang-rt-dev libgtest-dev)
# A Node from elsewhere is as good, and Debian's npm could not be installed beside it.
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  test_packages+=(nodejs npm)
fi

# Usage: ensure_promtool FILE   Only this one program of its package, which would start a server.
ensure_promtool() {
  local file=$1 folder
  if command -v promtool >/dev/null || [[ -x $file ]]; then return 0; fi
  echo "Fetching promtool"
  folder=$(mktemp -d)
  mkdir -p "$(dirname "$file")"
  (cd "$folder" && apt-get download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb |
    tar -x -O ./usr/bin/promtool >promtool) </dev/null >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    rm -rf "$folder"
    echo "Could not fetch promtool, which the tests of metrics need: install it, or prometheus" >&2
    exit 3
  }
  install -m 755 "$folder/promtool" "$file"
  rm -rf "$folder"
}

# Usage: ensure_packages NAME...   Installs those that are missing, or says which and exits with 3.
ensure_packages() {
  local name missing=() as_root=()
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
      missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi

  if ! command -v apt-get >/dev/null; then
    echo "This is not a Debian system. Install what these Debian packages hold, then build with CMake" \
      "(docs/how-to/install.md): ${missing[*]}" >&2
    exit 3
  fi
  if [[ $(id -u) != 0 ]]; then
    if ! sudo -n true 2>/dev/null; then
      echo "Packages are missing, and installing them needs root. Run:" >&2
      echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 3
    fi
    as_root=(sudo -n)
  fi

  echo "Installing ${missing[*]}"
  local log try apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120)
  log=$(mktemp)
  for try in 1 2 3; do
    if { "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } \
      </dev/null >"$log" 2>&1; then
      rm -f "$log"
      return 0
    fi
    if ((try < 3)); then sleep 5; fi
  done
  cat "$log" >&2
  rm -f "$log"
  echo "Could not install ${missing[*]}" >&2
  exit 3
}
