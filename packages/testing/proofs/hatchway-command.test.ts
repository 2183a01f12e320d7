import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

/** `hatchway` inside a sandbox, as a shell script without MCP uses it. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

const script = `
cat > /dev/null
echo 'buy milk' > notes.txt
show() { echo "[$1]"; shift; "$@" 2>&1; echo "= $?"; }
show where command -v hatchway
show tools hatchway tools
show help hatchway call send_message --help
show send hatchway call send_message --text 'from a script' --attachments notes.txt
show json hatchway call schedule_task --json '{"prompt":"tick","schedule_type":"interval","schedule_value":"3600000"}'
echo 'from a pipe' | show pipe hatchway call send_message --text -
show missing hatchway call send_message
show wrong hatchway call schedule_task --prompt x --schedule-type never --schedule-value 1
show refused hatchway call cancel_task --task-id 4711
show stranger hatchway call no_such_tool
show gone env HATCHWAY_IPC=/tmp hatchway call send_message --text nobody
show offer hatchway up
`

const sandboxes = ['process', 'bubblewrap'] as const

describe(`The command in a sandbox${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt.each(sandboxes)('calls the tools of the host, in %s', async sandbox => {
    const { say, texts, hatchway } = await openInstallation({
      sandbox,
      environment: home => {
        const file = join(home, 'hatchway.config.mjs')
        const config = { agents: { driver: 'command', command: ['/bin/sh', '-c', script] } }
        writeFileSync(file, `export default ${JSON.stringify(config)}`)
        return { HATCHWAY_CONFIG: file }
      },
    })
    await say('go')
    await until(async () => (await texts()).some(text => text.includes('[offer]')))
    const said = await texts()
    const report = said.find(text => text.includes('[offer]')) ?? ''
    const part = (name: string) =>
      new RegExp(`\\[${name}\\]\\n([\\s\\S]*?)^= (\\d+)$`, 'm').exec(report) ?? []
    const of = (name: string) => part(name)[1]
    const codes = [
      'tools',
      'help',
      'send',
      'json',
      'pipe',
      'missing',
      'wrong',
      'refused',
      'stranger',
      'gone',
      'offer',
    ]
    expect(codes.map(name => [name, Number(part(name)[2])])).toEqual([
      ...[
        ['tools', 0],
        ['help', 0],
        ['send', 0],
        ['json', 0],
        ['pipe', 0],
        ['missing', 2],
      ],
      ...[
        ['wrong', 2],
        ['refused', 1],
        ['stranger', 2],
        ['gone', 4],
        ['offer', 2],
      ],
    ])
    expect(of('where')).toContain('/commands/hatchway')
    expect(of('tools')).toMatch(/^send_message +Says something in this group’s chat/m)
    expect(of('help')).toContain('--text TEXT (required)')
    expect(of('send')).toMatch(/Message \d+ is queued\.\n\{"request_id"/)
    expect(of('missing')).toContain(
      '--text must be given. hatchway call send_message --help says what it takes',
    )
    expect(of('wrong')).toContain('schedule_type')
    expect(of('refused')).toMatch(/refused this \(not_found\)/)
    expect(of('stranger')).toContain('hatchway tools lists them')
    expect(said).toEqual(expect.arrayContaining(['from a script', 'from a pipe\n']))
    expect(said).not.toContain('nobody')
    expect(await hatchway('tasks', 'list')).toContain('tick')
  })
})
