#!/bin/sh
# Hatchway without root anywhere: Podman as the ordinary user who runs the daemon. Checks what it needs, says what is
# missing, and makes the image of the Dockerfile beside it. Run it as that user, from the project's root.
set -eu

me=$(id -un)
fail() { printf '%s\n' "$*" >&2; exit 1; }

[ "$(id -u)" -ne 0 ] || fail 'Run this as the ordinary user that will run the daemon, not as root.'
command -v podman >/dev/null || fail 'Podman is missing. On Debian: sudo apt-get install podman uidmap slirp4netns'
command -v newuidmap >/dev/null || fail 'newuidmap is missing. On Debian: sudo apt-get install uidmap'
for file in /etc/subuid /etc/subgid; do
  grep -q "^$me:" "$file" 2>/dev/null ||
    fail "$file gives $me no numbers to map. Run: sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $me"
done
[ "$(podman info --format '{{.Host.CgroupsVersion}}')" = v2 ] ||
  fail 'This machine has cgroups version 1, with which Podman cannot limit memory and processes without root. Use bubblewrap.'
# The daemon's containers must outlive the login.
loginctl enable-linger "$me" 2>/dev/null || printf 'Note: containers end when %s logs out (loginctl enable-linger failed).\n' "$me"

npx node packages/agent/bundle.ts
podman build --tag hatchway-agent --file packages/agent/image/Dockerfile packages/agent

cat <<'END'

Done. In hatchway.config.ts:

  agents: { sandbox: 'podman', image: 'localhost/hatchway-agent' },

Leave `image` out to use this machine's own programs instead. `hatchway doctor` shows whether it works. Containers get
your own user number (--userns keep-id), so what agents write is yours.
END
