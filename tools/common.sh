# SPDX-License-Identifier: Apache-2.0
# Shared by tools/quickstart and tools/test: find or install what the build needs, configure, build. Source it; it prints what it does.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
fail() { printf 'ranktune: %s\n' "$*" >&2; exit 1; }

# Each need: one or more ways to detect it (a program, a pkg-config file, a Python module, a C++ header, a file), and the Debian package that
# provides it.
compiler=${CXX:-g++} # may be "ccache g++-12"
needs=(
  "cmd=${compiler##* }:g++" 'cmd=meson:meson' 'cmd=ninja cmd=ninja-build:ninja-build' 'cmd=pkg-config cmd=pkgconf:pkg-config'
  'cmd=mpicxx cmd=mpic++ pc=ompi-cxx pc=mpich:libopenmpi-dev' 'pc=hdf5-serial pc=hdf5 cmd=h5cc cmd=h5pcc:libhdf5-dev'
  'pc=tomlplusplus header=toml++/toml.h:libtomlplusplus-dev' 'pc=fmt header=fmt/format.h:libfmt-dev' 'pc=nlohmann_json header=nlohmann/json.hpp:nlohmann-json3-dev' 'pc=CLI11 header=CLI/CLI.hpp:libcli11-dev'
  'pc=hwloc:libhwloc-dev' 'pc=eigen3 header=Eigen/Core:libeigen3-dev' 'pc=nlopt:libnlopt-dev' 'pc=libpcre2-8:libpcre2-dev' 'pc=zlib:zlib1g-dev' 'header=boost/math/distributions/students_t.hpp:libboost-dev' 'pc=openblas pc=flexiblas pc=blis pc=blis-mt pc=mkl-dynamic-lp64-seq:libopenblas-pthread-dev'
)
# Optional: `ranktune report` draws with d3. Without root rights, or elsewhere, the program does without.
[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && needs+=('file=/usr/share/nodejs/d3/dist/d3.min.js:node-d3')
run_needs=('cmd=mpirun:openmpi-bin') # to run studies on one machine, not for the build
test_needs=('pc=catch2 pc=catch2-with-main:catch2' 'cmd=python3:python3' 'py=h5py:python3-h5py' 'py=numpy:python3-numpy')

# The system's python3 sees the distribution's packages; another one on PATH may not.
# python_with MODULE: prints its path.
python_with() { for p in /usr/bin/python3 python3; do command -v "$p" >/dev/null && "$p" -c "import $1" 2>/dev/null && command -v "$p" && return 0; done; return 1; }

have() {
  local way
  for way in ${1%:*}; do
    case $way in
      pc=*) command -v pkg-config >/dev/null && pkg-config --exists "${way#pc=}" && return 0 ;;
      py=*) python_with "${way#py=}" >/dev/null && return 0 ;;
      header=*) printf '#include <%s>\n' "${way#header=}" | $compiler -x c++ -E - >/dev/null 2>&1 && return 0 ;;
      file=*) [ -e "${way#file=}" ] && return 0 ;;
      cmd=*) command -v "${way#cmd=}" >/dev/null && return 0 ;;
    esac
  done
  return 1
}

# Installs the packages of missing needs; without root rights, prints the command to run and exits.
install_missing() {
  local missing=() need
  for need in "$@"; do have "$need" || missing+=("${need##*:}"); done
  [ ${#missing[@]} -eq 0 ] && return 0
  local line="apt-get install -y --no-install-recommends ${missing[*]}"
  if ! command -v apt-get >/dev/null; then
    fail "missing: ${missing[*]} (Debian's names). Load your centre's modules, or install them, then run this again"
  fi
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo=(sudo); else
      say "These packages are missing: ${missing[*]}"
      say "Install them (or load your centre's modules), then run this again:"
      say "    sudo $line"
      exit 1
    fi
  fi
  say "Installing from the distribution: ${missing[*]}"
  local log; log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update && DEBIAN_FRONTEND=noninteractive "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive $line -o DPkg::Lock::Timeout=120; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "the installation failed (log: $log). Run it by hand: $line"
  fi
  rm -f "$log"
}

# configure BUILD_DIRECTORY OPTION...: sets up the directory, or applies changed options.
configure() {
  local build=$1; shift
  local log="$build.setup.log"
  if [ -f "$build/build.ninja" ]; then
    meson configure "$build" "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "meson configure failed"; }
    # In a configured build, --buildtype overrides the optimisation that is given beside it, and all would be compiled again.
    local option
    for option in "$@"; do
      case $option in -Doptimization=*) meson configure "$build" "$option" >>"$log" 2>&1 ;; esac
    done
  else
    local cxx=${CXX:-g++}
    command -v ccache >/dev/null && cxx="ccache $cxx"
    CXX=$cxx meson setup "$build" "$root" "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "meson setup failed (log: $log)"; }
  fi
}

# Reads ninja's lines: says how far it is, on a terminal in one line that stays, else at each tenth.
show_progress() {
  local line ready all left tenth=0 begun=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    ready=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    [ "$ready" -gt 0 ] || continue # Meson runs again first
    left=$(((SECONDS - begun) * (all - ready) / ready))
    left="$ready of $all, about $((left / 60)) min $((left % 60)) s left"
    if [ -t 1 ]; then
      printf '\r  %s\e[K' "$left"
    elif [ "$all" -ge 20 ] && [ $((ready * 10 / all)) -gt $tenth ] && [ "$ready" -lt "$all" ]; then
      tenth=$((ready * 10 / all))
      say "  $left"
    fi
  done
  if [ -t 1 ]; then printf '\r\e[K'; fi
}

# build BUILD_DIRECTORY [TARGET...]
build() {
  local build=$1; shift
  local log="$build.build.log"
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "$build" "$@" 2>&1 | tee "$log" | show_progress; then
    grep -E -A5 'error|FAILED' "$log" | head -n 60 >&2
    fail "the build failed (log: $log)"
  fi
}
