import { readFileSync } from 'node:fs'
import type { ChannelAnswer, PairingAnswer } from '@hatchway/host/api'
import { call, command, family, list } from '../command.ts'
import { Failure, usageError } from '../failure.ts'
import { timeColumn } from '../format.ts'
import { type CommonOptions, flag, required, requiredText, text, texts } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { poll } from '../poll.ts'
import { withProgress } from '../progress.ts'
import { url, withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<ChannelAnswer>[] = [
  { title: 'NAME', value: channel => channel.name },
  { title: 'STATE', value: stateOf, flexible: true },
  timeColumn('SINCE', channel => channel.since),
]

function stateOf(channel: ChannelAnswer): string {
  const { name, added, connected, last_error, problem, limited_until, per_second, waiting, confirm } = channel
  if (!added) return `not added: npx hatchway channels add ${name}`
  if (problem !== null) return problem
  if (confirm !== null) return `waits for you to confirm it: npx hatchway channels add ${name}`
  if (connected === null) return 'added; the daemon does not run'
  if (limited_until !== null && new Date(limited_until) > new Date())
    return `waits until ${limited_until}, as the platform asks`
  if (!connected) return last_error === null ? 'connecting' : `not connected: ${last_error}`
  if (waiting > 0) return `connected; ${waitingText(waiting, per_second)}`
  return last_error === null ? 'connected' : `connected; last error: ${last_error}`
}

const waitingText = (chats: number, perSecond: number | null): string =>
  `${chats} ${chats === 1 ? 'chat waits' : 'chats wait'} for a turn${perSecond === null ? '' : ` (${perSecond} messages a second for all)`}`

const pairingColumns: Column<PairingAnswer>[] = [
  { title: 'CODE', value: pairing => pairing.code },
  { title: 'STATUS', value: pairing => pairing.status },
  { title: 'WHO', value: pairing => `${pairing.sender_name} (${pairing.sender})`, flexible: true },
  { title: 'CHAT', value: pairing => pairing.jid, flexible: true },
  { title: 'NAME', value: pairing => pairing.name, flexible: true },
  timeColumn('ASKED', pairing => pairing.asked_at),
  { title: 'NOTE', value: pairing => pairing.notes.join('; '), flexible: true },
]

async function layoutFor({ data, config: file }: CommonOptions) {
  const [host, { explainConfig }] = await Promise.all([
    import('@hatchway/host'),
    import('@hatchway/host/config'),
  ])
  const { config } = await explainConfig({ data, file })
  return { host, layout: host.layoutOf(config.data) }
}

async function install(name: string, options: CommonOptions): Promise<void> {
  const { host, layout } = await layoutFor(options)
  if (host.isChannelInstalled(layout, name) !== false) return
  const title = `Installing what ${name} needs`
  await withProgress(title, say =>
    host.installChannel(name, {
      layout,
      progress: bytes => say(`${title}: ${Math.round(bytes / 1_000_000)} MB`),
    }),
  )
}

/** `token=…`, or `token=@file` for what is better not seen by others on this machine. */
function givenSettings(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map(pair => {
      const at = pair.indexOf('=')
      if (at < 1) throw usageError(`--set ${visible(pair)} is not of the form key=value.`)
      const value = pair.slice(at + 1)
      return [pair.slice(0, at), value.startsWith('@') ? readFileSync(value.slice(1), 'utf8').trim() : value]
    }),
  )
}

/** Asks for what was not given; at no terminal, what is missing is reported by the host. */
async function askedFor(
  channel: ChannelAnswer,
  given: Record<string, string>,
): Promise<Record<string, string>> {
  const open = channel.questions.filter(({ key }) => given[key] === undefined)
  if (open.length === 0 || !process.stdin.isTTY) return given
  const { withQuestions } = await import('../questions.ts')
  const whenEnded = `${channel.title} was not added.`
  const answers: Record<string, string> = {}
  for (const { key, question, secret: hidden } of open) {
    const answer = await withQuestions(
      ({ ask, secret }) => (hidden ? secret(`${question} `) : ask(question, '')),
      { hidden, whenEnded },
    )
    if (answer !== '') answers[key] = answer
  }
  return { ...given, ...answers }
}

/** Shows what is to be scanned or typed in the app, again whenever it changes, until the app has confirmed it. */
async function waitUntilConfirmed(
  read: () => Promise<readonly ChannelAnswer[]>,
  name: string,
): Promise<void> {
  let shown: string | undefined
  const settled = await poll(
    async () => {
      const channel = (await read()).find(one => one.name === name)
      if (!channel?.confirm) return channel && isSettled(channel) ? channel : undefined
      if (channel.confirm.value !== shown) await printLine(await confirmationText(channel.confirm))
      shown = channel.confirm.value
      return undefined
    },
    { everyMs: 500 },
  )
  if (settled?.problem) throw new Failure(settled.problem)
  if (settled && shown !== undefined) await printLine(`Now it is ${stateOf(settled)}.`)
}

/** Neither on its way to be connected nor waiting for somebody. */
const isSettled = ({ connected, last_error, problem }: ChannelAnswer): boolean =>
  connected !== false || last_error !== null || problem !== null

async function confirmationText({ kind, value }: NonNullable<ChannelAnswer['confirm']>): Promise<string> {
  if (kind === 'code') return `Type this code in the app: ${visible(value)}`
  const { renderUnicodeCompact } = await import('uqr')
  const lines = renderUnicodeCompact(value, { border: 2 }).split('\n')
  // White on black, whatever the colours of the terminal are: not every app reads a code the other way round.
  const shown = process.stdout.isTTY ? lines.map(line => `\u001b[97;40m${line}\u001b[0m`) : lines
  return `${shown.join('\n')}\nScan this code with the app. It changes from time to time.`
}

const add = command('add', 'connect a chat app: ask for its settings, test them and save them', {
  example: 'telegram\ntelegram --set token=@token-file',
  input: {
    name: required('its name, as in channels list'),
    set: texts('key=value', 'an answer in advance; @file for what a file holds'),
  },
  async run({ name, set, ...options }) {
    await install(name, options)
    await withClient(
      options,
      async (client, api) => {
        const all = await client.get('/channels', api.channelsAnswer)
        const channel = all.find(one => one.name === name)
        if (!channel)
          throw usageError(
            `There is no channel ${visible(name)}. There are: ${all.map(one => one.name).join(', ')}.`,
          )
        const settings = await askedFor(channel, givenSettings(set))
        const added = await withProgress(`Asking ${channel.title}`, () =>
          client.post('/channels', { kind: name, settings }, api.channelAddedAnswer),
        )
        if (options.json) return printJson({ name, ...added })
        await printLine(`${channel.title} is added, as ${visible(added.as)}.`)
        await waitUntilConfirmed(() => client.get('/channels', api.channelsAnswer), name)
        await printLine('Next:')
        for (const [i, step] of added.next.entries()) await printLine(`  ${i + 1}. ${step}`)
      },
      { creates: true },
    )
  },
})

export default family('channels', 'connect chat apps and decide who may write', [
  list('list', 'list chat apps and their status', {
    example: '--json',
    isDefault: true,
    rows: (client, api) => client.get('/channels', api.channelsAnswer),
    columns,
    empty: 'There are none.',
  }),
  add,
  call('test', 'test the connection to a chat app', {
    example: 'telegram',
    input: { name: required('its name') },
    progress: 'Asking the platform',
    call: (client, api, { name }) =>
      client.post(url`/channels/${name}/test`, undefined, api.channelAddedAnswer),
    print: ({ as }, { name }) => `${visible(name)} lets us in, as ${visible(as)}.`,
  }),
  call('remove', 'disconnect a chat app and delete its token; groups and messages stay', {
    example: 'telegram',
    input: { name: required('its name') },
    async call(client, api, { name }) {
      const { removed } = await client.delete(url`/channels/${name}`, api.removedAnswer)
      if (!removed) throw new Failure(`${visible(name)} was not added.`)
      return { removed }
    },
    print: (_, { name }) => `${visible(name)} is removed.`,
  }),
  list('requests', 'list chats that ask for access', {
    example: '--json',
    input: { all: flag('include decided ones') },
    rows: async (client, api, { all }) =>
      (await client.get('/pairings', api.pairingsAnswer)).filter(({ status }) => all || status === 'open'),
    columns: pairingColumns,
    empty: 'Nobody waits to be let in.',
  }),
  call('approve', 'approve a chat that asks for access, as a group with its own folder', {
    example: 'BCDFG-HJKLM --folder family --trigger @hatch',
    input: {
      which: required('its code, or the address of its chat'),
      folder: requiredText('folder', 'the group’s folder'),
      name: text('name', 'the group’s name (default: the chat’s name)'),
      trigger: text('word', 'the word in a message that calls the agent'),
    },
    call: (client, api, { which, folder, name, trigger }) =>
      client.post(url`/pairings/${which}/approve`, { folder, name, trigger }, api.resultAnswer),
    print: (_, { folder }) => `${visible(folder)} is let in.`,
  }),
  call('deny', 'deny a chat access; it cannot ask again', {
    example: 'BCDFG-HJKLM',
    input: { which: required('its code, or the address of its chat') },
    call: (client, api, { which }) => client.post(url`/pairings/${which}/deny`, undefined, api.resultAnswer),
    print: () => 'Refused. They are not heard, and cannot ask again.',
  }),
  call('forget', 'delete a chat’s request for access, so that it can ask again', {
    example: 'BCDFG-HJKLM',
    input: { which: required('its code, or the address of its chat') },
    call: (client, api, { which }) => client.delete(url`/pairings/${which}`, api.resultAnswer),
    print: () => 'Forgotten.',
  }),
])
