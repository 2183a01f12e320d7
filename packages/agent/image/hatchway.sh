#!/bin/sh
# `hatchway` inside a sandbox: lists and calls the tools of the host. The program is beside its folder.
hatchway_node=${HATCHWAY_NODE:-/opt/hatchway/node}
exec "$hatchway_node" "${0%/*}/../agent.mjs" hatchway "$@"
