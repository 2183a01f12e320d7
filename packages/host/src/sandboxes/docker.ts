import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { buildImage, createOci, type EngineFacts, type OciOptions } from './oci.ts'
import type { Sandbox } from './types.ts'

const informationSchema = z.object({
  ServerVersion: z.string().default(''),
  OperatingSystem: z.string().default(''),
  SecurityOptions: z.array(z.string()).nullish(),
  ServerErrors: z.array(z.string()).nullish(),
})

const remedy = 'Is the engine running, and may this user use it? On Debian: sudo systemctl start docker'

export function createDocker(options: OciOptions = {}): Sandbox {
  const environment = options.environment ?? process.env
  return createOci(
    {
      name: 'docker',
      title: 'Docker',
      remedy,
      inquiry: ['info', '--format', '{{json .}}'],
      understand: answer => understand(answer, options.image, environment),
      labelInList: name => `{{.Label "${name}"}}`,
      runArguments: () => ['--init', '--ulimit', 'core=0:0', ...withoutProxies(environment)],
    },
    options,
  )
}

function understand(answer: string, image: string | undefined, environment: NodeJS.ProcessEnv): EngineFacts {
  const information = informationSchema.parse(JSON.parse(answer))
  const remote = /^(tcp|ssh|https?):/.test(environment.DOCKER_HOST ?? '')
  // Asked for JSON, the client answers this way, and with exit code 0, where there is no engine.
  const [silent] = information.ServerErrors ?? []
  const machine = information.OperatingSystem.includes('Docker Desktop')
  return {
    version: information.ServerVersion,
    rootIsOurUser: (information.SecurityOptions ?? []).some(option => option.includes('rootless')),
    ...(silent !== undefined
      ? { unusable: `Docker does not answer: ${silent.replace(/[.?]$/, '')}. ${remedy}` }
      : remote
        ? { unusable: 'The Docker engine is on another machine, which does not have our files.' }
        : machine && image === undefined
          ? {
              unusable: `Docker Desktop runs in a machine of its own, so it needs an image. ${buildImage('docker')}`,
            }
          : {}),
  }
}

/** The client puts proxies from its configuration, credentials included, into every container that does not say no. */
function withoutProxies(environment: NodeJS.ProcessEnv): string[] {
  const file = join(environment.DOCKER_CONFIG ?? join(homedir(), '.docker'), 'config.json')
  if (!existsSync(file) || !readFileSync(file, 'utf8').includes('"proxies"')) return []
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'FTP_PROXY', 'NO_PROXY', 'ALL_PROXY']
  return names.flatMap(name => ['--env', `${name}=`, '--env', `${name.toLowerCase()}=`])
}
