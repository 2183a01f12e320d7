import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startChild, temporaryFolder, until } from './rig.ts'

it('runs the example of the README', async () => {
  const packageFolder = fileURLToPath(new URL('..', import.meta.url))
  const [agent = '', host = ''] = [
    ...readFileSync(join(packageFolder, 'README.md'), 'utf8').matchAll(/```ts\n(.*?)```/gs),
  ].map(([, code = '']) => code)
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules', '@hatchway'), { recursive: true })
  symlinkSync(packageFolder, join(folder, 'node_modules', '@hatchway', 'spool'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'agent.ts'), agent)
  writeFileSync(join(folder, 'host.ts'), host)
  mkdirSync(join(folder, 'data', 'ipc', 'alice', 'messages'), { recursive: true })

  const run = (script: string) => startChild([], { script: join(folder, script), cwd: folder })
  await run('agent.ts').output
  const running = run('host.ts')
  running.output.catch(() => 'it is killed')
  let printed = ''
  running.process.stdout?.on('data', (piece: string) => {
    printed += piece
  })
  await until(() => printed !== '')
  await run('agent.ts').output
  await until(() => printed.split('\n').length === 3)
  expect(printed).toBe('alice {"text":"hello"}\nalice {"text":"hello"}\n')
})
