#!/usr/bin/env node
// Plain JavaScript for any Node: one that is too old cannot even load the bundle.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major > 22 || (major === 22 && minor >= 13)) await import('../dist/agent.mjs')
else {
  console.error(
    `hatchway-agent: this is Node ${process.versions.node}, but it needs Node 22.13 or newer. Install a newer one, for example from https://nodejs.org.`,
  )
  process.exitCode = 1
}
