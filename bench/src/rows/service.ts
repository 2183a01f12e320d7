import { judgeShell } from '@hatchway/protocol/shell'
import type { Contender } from '../contenders.ts'
import { interleave } from '../contenders.ts'
import { absent, microseconds, times, timing } from '../format.ts'
import { type Durability, directoryOf } from '../hatchway.ts'
import { openHatchway } from '../peers/hatchway.ts'
import { requestContender } from '../requester.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { median, pairedRatio } from '../statistics.ts'

const durabilities: readonly Durability[] = ['process', 'full']

const asked = [
  { name: 'command', tool: undefined },
  { name: 'service within the commit', tool: 'list_todos' },
  { name: 'service asked and answered', tool: 'bench_echo' },
  { name: 'shell check, unknown command', tool: 'shell:make test' },
] as const

const nobody = async () => {}

/** A plain command's receipt is measured between the same rounds: what a service costs more is the service's. */
const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const lines: Line[] = []
  const figures: Record<string, unknown> = {}
  const missing: string[] = []
  for (const durability of durabilities) {
    const opened = await openHatchway(directory, durability, 1, { services: true })
    if ('missing' in opened) {
      missing.push(opened.missing)
      continue
    }
    const { data } = opened.options
    const directories = {
      requests: directoryOf(data, 0, 'tasks'),
      responses: directoryOf(data, 0, 'responses'),
    }
    const contenders: Contender[] = []
    for (const { name, tool } of asked) {
      contenders.push(await requestContender(`${name} ${durability}`, directories, nobody, tool))
    }
    const measured = await interleave(contenders, { rounds: quick ? 5 : 15, samples: quick ? 60 : 100, say })
    for (const contender of contenders) await contender.end()
    await opened.end()
    Object.assign(figures, Object.fromEntries(measured))
    const base = measured.get(`command ${durability}`)
    for (const { name, tool } of asked) {
      const own = measured.get(`${name} ${durability}`)
      if (tool === undefined || !base || !own) continue
      lines.push({
        what: `${name}, ${durability}`,
        hatchway: timing(own),
        against: `a command’s receipt ${timing(base)}`,
        ratio: times(pairedRatio(own.medians, base.medians)),
        target: absent,
      })
    }
  }
  lines.push(harmless())
  return { lines, figures, missing }
}

/** A harmless command is let pass in the sandbox itself: what it costs is to read it. */
const harmless = (): Line => {
  const command = 'grep -rn "TODO" src | sort | uniq -c | head -20'
  const samples: number[] = []
  for (let i = 0; i < 2000; i++) {
    const begin = performance.now()
    judgeShell(command)
    samples.push((performance.now() - begin) * 1000)
  }
  return {
    what: 'shell check, harmless command',
    hatchway: microseconds(median(samples)),
    against: 'no request at all',
    ratio: absent,
    target: absent,
  }
}

export const service: Row = { name: 'service', title: 'request to a service, or to the guard → answer', run }
