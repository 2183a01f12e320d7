import { existsSync } from 'node:fs'
import { z } from 'zod'
import { platform } from '../base/platform.ts'
import { findProgram } from '../base/programs.ts'
import { createOci, type OciOptions } from './oci.ts'
import type { Sandbox } from './types.ts'

const informationSchema = z.object({
  version: z.object({ Version: z.string() }),
  host: z.object({ cgroupVersion: z.string().default(''), security: z.object({ rootless: z.boolean() }) }),
})

export function createPodman(options: OciOptions = {}): Sandbox {
  let rootless = false
  return createOci(
    {
      name: 'podman',
      title: 'Podman',
      remedy:
        'Try `podman info` as the user the daemon runs as; docs/sandboxes.md has a setting for each case.',
      inquiry: ['info', '--format', 'json'],
      understand(answer) {
        const { version, host } = informationSchema.parse(JSON.parse(answer))
        rootless = host.security.rootless
        const unlimited = rootless && host.cgroupVersion === 'v1'
        return {
          version: version.Version,
          rootIsOurUser: false,
          ...(unlimited
            ? { unusable: 'Podman without root cannot limit memory and processes with cgroups version 1.' }
            : {}),
        }
      },
      // Podman 4.3 does not know Docker's way, and fails as soon as there is a container to list.
      labelInList: name => `{{index .Labels "${name}"}}`,
      runArguments: () => [
        // Podman would hand the host's proxy settings to the container.
        '--http-proxy=false',
        // Nor does it leave the root read-only: it adds writable places without a bound.
        '--read-only-tmpfs=false',
        // Without root, our own user number is mapped to itself, so files have the same owner inside and outside.
        ...(rootless ? ['--userns', 'keep-id'] : []),
        ...ourLimits(),
        ...firstProcess(),
      ],
    },
    { ...options, globalArguments: [...cgroupArguments(), ...(options.globalArguments ?? [])] },
  )
}

/** Podman leaves cgroups to systemd, also where there is none. */
const cgroupArguments = (): string[] =>
  platform.cgroups !== undefined && !existsSync('/run/systemd/system') ? ['--cgroup-manager=cgroupfs'] : []

/**
 * Podman asks for more open files than some machines let even root have, and lowers its own number of processes to the
 * largest process number before it starts anything. What is within both is certain to be granted.
 */
function ourLimits(): string[] {
  const limits = platform.limits()
  if (limits === undefined) return []
  const files = Math.min(limits.files, 1_048_576)
  return [
    ...['--ulimit', 'core=0:0', '--ulimit', `nofile=${files}:${files}`],
    ...['--ulimit', `nproc=${limits.processes}:${limits.processes}`],
  ]
}

/** Something must bury the dead inside. Podman's own program for it is a package of its own on Debian. */
function firstProcess(): string[] {
  const own = ['/usr/libexec/podman/catatonit', '/usr/lib/podman/catatonit', '/usr/bin/catatonit']
  if (own.some(path => findProgram(path) !== undefined)) return ['--init']
  // The second needs the libraries of the host, which an image may not have.
  const other = findProgram('docker-init') ?? findProgram('tini')
  return other === undefined ? [] : ['--init', '--init-path', other]
}
