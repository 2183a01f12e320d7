import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'

/** Writers that do not rename: an `echo >` in the agent's shell, or worse (promise 1). */
async function open(graceMs: number): Promise<Live> {
  const live = await openLive({ graceMs })
  onTestFinished(() => live.close())
  await live.host.addGroup({ folder: 'a', jid: 'a@chat', name: 'A', main: false, dialect: 'nanoclaw' })
  await live.start()
  return live
}
const message = (text: string) => JSON.stringify({ type: 'message', chatJid: 'a@chat', text }, null, 2)
const pathOf = ({ layout }: Live, name: string) => join(layout.ipc, 'a', 'messages', name)
const claimed = ({ layout }: Live) =>
  readdirSync(layout.spool)
    .filter(bucket => bucket !== 'staging')
    .flatMap(bucket => readdirSync(join(layout.spool, bucket)).map(name => join(layout.spool, bucket, name)))
const textsOf = ({ host }: Live) => host.store.messages({}).map(({ text }) => text)

test('a shell that writes one half, waits, and writes the other is heard once and never refused', async () => {
  const live = await open(60_000)
  const body = message('in two halves')
  const middle = Math.floor(body.length / 2)
  const script = 'exec > "$1"; printf %s "$2"; read go; printf %s "$3"'
  const args = ['-c', script, 'sh', pathOf(live, 'halves.json'), body.slice(0, middle), body.slice(middle)]
  const shell = spawn('sh', args, { stdio: ['pipe', 'ignore', 'inherit'] })
  // It is claimed while half of it is missing; the shell goes on writing to what it has open.
  await until('the first half is claimed', () => claimed(live).length === 1)
  await until('it is read', () => readFileSync(claimed(live)[0] ?? '', 'utf8').length === middle)
  expect(live.events).toEqual([])
  shell.stdin.end('\n')
  await once(shell, 'exit')
  await until('it is heard', () => live.events.length > 0)
  await until('it is finished', () => claimed(live).length === 0)
  expect(textsOf(live)).toEqual(['in two halves'])
  expect(live.events).toHaveLength(1)
  expect(readdirSync(live.layout.errors)).toEqual([])
})

test('every place to stop at is one to go on from', async () => {
  const live = await open(60_000)
  const body = message('one “letter” after another ✓')
  const bytes = Buffer.from(body)
  const path = pathOf(live, 'letters.json')
  writeFileSync(path, bytes.subarray(0, 1))
  for (let i = 1; i < bytes.length; i++) {
    const here = existsSync(path) ? path : claimed(live)[0]
    if (here === undefined) throw new Error(`it is gone after ${i} bytes`)
    appendFileSync(here, bytes.subarray(i, i + 1))
    if (i % 7 === 0) await new Promise(resolve => setTimeout(resolve, 1))
  }
  await until('it is heard', () => live.events.length > 0)
  expect(textsOf(live)).toEqual(['one “letter” after another ✓'])
  expect(readdirSync(live.layout.errors)).toEqual([])
})

test('one that is never completed is refused after the grace, and holds nobody up meanwhile', async () => {
  const live = await open(300)
  const body = message('never ends')
  writeFileSync(pathOf(live, 'half.json'), body.slice(0, 20))
  await until('it is claimed', () => claimed(live).length === 1)
  writeFileSync(pathOf(live, 'whole.json'), message('goes ahead'))
  await until('it is refused', () => live.events.length === 2)
  expect(
    live.events.map(({ file, outcome }) => `${file} ${outcome?.ok === false ? outcome.error.code : 'done'}`),
  ).toEqual(['whole.json done', 'half.json invalid_json'])
  expect(live.host.quarantine.list()).toMatchObject([
    { original_file: 'half.json', code: 'invalid_json', kept: true },
  ])
  expect(textsOf(live)).toEqual(['goes ahead'])
})

test('an empty file, and one that ends in half a character, get the same grace', async () => {
  const live = await open(300)
  writeFileSync(pathOf(live, 'empty.json'), '')
  const cut = Buffer.from(message('✓'))
  writeFileSync(pathOf(live, 'cut.json'), cut.subarray(0, cut.indexOf(Buffer.from('✓')) + 1))
  await until('both are refused', () => live.events.length === 2)
  expect(
    new Map(live.host.quarantine.list().map(({ original_file, code }) => [original_file, code])),
  ).toEqual(
    new Map([
      ['empty.json', 'invalid_json'],
      ['cut.json', 'invalid_utf8'],
    ]),
  )
})

test('what is wrong, and not only unfinished, is refused at once', async () => {
  const live = await open(600_000)
  writeFileSync(pathOf(live, 'wrong.json'), '{"type":"message","text":]')
  writeFileSync(pathOf(live, 'more.json'), '{"type":"message"} {"type":')
  await until('both are refused', () => live.events.length === 2)
  expect(live.host.quarantine.list().map(({ code }) => code)).toEqual(['invalid_json', 'invalid_json'])
})

test('one that is half-written when the host ends is completed under the next', async () => {
  const live = await open(60_000)
  const body = message('outlives a host')
  writeFileSync(pathOf(live, 'half.json'), body.slice(0, 20))
  await until('it is claimed', () => claimed(live).length === 1)
  await live.reopen()
  await live.start()
  expect(live.events).toEqual([])
  appendFileSync(claimed(live)[0] ?? '', body.slice(20))
  await until('it is heard', () => live.events.length === 1)
  expect(textsOf(live)).toEqual(['outlives a host'])
  expect(readdirSync(live.layout.errors)).toEqual([])
})
