# Shared by the scripts beside it: messages, and system packages where we may install them.

say() { printf '\033[2m· %s\033[0m\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

require_python() {
  command -v python3 >/dev/null || die "python3 is missing; install Python 3.11 or newer"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "moldau needs Python 3.11 or newer, and python3 here is $(python3 -V 2>&1); install a newer one and put it first on PATH"
}

# apt_install PACKAGE...: install Debian packages quietly; fails where there is no apt or no right to use it.
apt_install() {
  command -v apt-get >/dev/null || return 1
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || return 1
    sudo=(sudo -n)
  fi
  say "installing $* with apt"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return 0
  "${sudo[@]}" apt-get update -qq >/dev/null 2>&1
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

# want COMMAND PACKAGE WHY: have a command, from apt if need be; says what goes without it otherwise.
want() {
  command -v "$1" >/dev/null && return 0
  apt_install "$2" || say "$1 is missing and could not be installed ($2): $3"
}
