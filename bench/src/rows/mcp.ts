import { type Absent, type Contender, interleave, isPresent } from '../contenders.ts'
import { absent, times, timing } from '../format.ts'
import { directoryOf, type HatchwayOptions, type SandboxName, sandboxNames } from '../hatchway.ts'
import { echoContender, echoName } from '../peers/echo.ts'
import { openHatchway } from '../peers/hatchway.ts'
import { mcpContender } from '../peers/mcp.ts'
import { requestContender } from '../requester.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { pairedRatio, type Rounds } from '../statistics.ts'

type Measured = ReadonlyMap<string, Rounds>

const mcpName = (sandbox: SandboxName) => `MCP in ${sandbox}`
const bareName = 'bare request and receipt'
const nobody = async () => {}

const line = (measured: Measured, sandbox: SandboxName, peer: string): Line => {
  const own = measured.get(mcpName(sandbox))
  const other = measured.get(peer)
  return {
    what: `MCP call → receipt, ${sandbox}`,
    hatchway: own === undefined ? absent : timing(own),
    against: other === undefined ? peer : `${peer} ${timing(other)}`,
    ratio: own && other ? times(pairedRatio(own.medians, other.medians)) : absent,
    target: absent,
  }
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  // one group for each sandbox, and one for whoever asks without MCP
  const opened = await openHatchway(directory, 'process', sandboxNames.length + 1)
  if ('missing' in opened) return { lines: [], figures: {}, missing: [opened.missing] }
  const options: HatchwayOptions = opened.options
  const responder = (sub: string) => directoryOf(options.data, sandboxNames.length, sub)
  const entrants: (Contender | Absent)[] = [
    await echoContender(directory),
    await requestContender(
      bareName,
      { requests: responder('tasks'), responses: responder('responses') },
      nobody,
    ),
  ]
  for (const [group, sandbox] of sandboxNames.entries())
    entrants.push(await mcpContender(mcpName(sandbox), sandbox, options, group))
  const present = entrants.filter(isPresent)
  const measured = await interleave(present, { rounds: quick ? 4 : 15, samples: quick ? 40 : 100, say })
  for (const contender of present) await contender.end()
  await opened.end()
  return {
    lines: [
      ...sandboxNames.map(sandbox => line(measured, sandbox, echoName)),
      line(measured, 'process', bareName),
    ],
    figures: Object.fromEntries(measured),
    missing: entrants.flatMap(entrant => (isPresent(entrant) ? [] : [entrant.missing])),
  }
}

export const mcp: Row = { name: 'mcp', title: 'MCP call → receipt, in each sandbox', run }
