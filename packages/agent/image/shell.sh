#!/bin/sh
# A shell that asks first, for agents that run commands by `sh`, `bash` or $SHELL. It is called like a shell, has the
# call judged, by the host where the rules do not know it as harmless, and then becomes the real shell.
# It is advice: a program that calls /bin/sh itself goes past it. What holds an agent is the sandbox.
hatchway_here=${0%/*}
hatchway_name=${0##*/}

for hatchway_real in "/bin/$hatchway_name" "/usr/bin/$hatchway_name" ''; do
  [ -x "$hatchway_real" ] && break
done
if [ -z "$hatchway_real" ]; then
  printf '%s: not found\n' "$hatchway_name" >&2
  exit 127
fi

hatchway_answer=$(
  exec "${HATCHWAY_NODE:-/opt/hatchway/node}" "$hatchway_here/check.mjs" "$hatchway_name" "$@"
) || {
  [ $? -eq 127 ] && exit 127
  exit 126
}
case $hatchway_answer in
  allow) ;;
  'allow '*)
    # What came on standard input was read to be judged, and lies here now.
    hatchway_input=${hatchway_answer#allow }
    exec <"$hatchway_input" || exit 126
    rm -rf -- "${hatchway_input%/*}"
    ;;
  *) exit 126 ;;
esac

# The first bash of all reads ~/.bashrc if its input is a socket, as programs in Node give it to what they start.
[ "${SHLVL:-0}" -ge 1 ] 2>/dev/null || SHLVL=1
export SHLVL
# What is allowed is allowed as a whole: whatever it starts does not ask again.
case $PATH in "$hatchway_here":*) PATH=${PATH#"$hatchway_here":} ;; esac
case ${SHELL-} in "$hatchway_here"/*) SHELL=$hatchway_real ;; esac
exec "$hatchway_real" "$@"
