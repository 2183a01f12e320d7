import { spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type Attack, drops, places, succeeds } from './attack.ts'

const note = ({ ledger }: Attack, what: string, amount: number) =>
  ledger.write({ kind: 'used', what, amount })
const rest = async (attack: Attack) => {
  while (!attack.isOver()) await sleep(20)
}

/** As much memory as there is, in several processes, each of its pages written to. */
export async function memory(attack: Attack): Promise<void> {
  const code =
    'const all=[];for(;;){const b=Buffer.allocUnsafeSlow(16<<20);b.fill(1);all.push(b);console.log(all.length*16)}'
  let most = 0
  const children = Array.from({ length: 4 }, () => {
    const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] })
    child.on('error', () => {})
    child.stdout?.on('data', (chunk: Buffer) => {
      most = Math.max(most, Number(chunk.toString().trim().split('\n').at(-1)))
    })
    return child
  })
  const kept: Buffer[] = []
  while (!attack.isOver()) {
    kept.push(Buffer.alloc(8 << 20, 1))
    note(attack, 'MB of memory in one process', Math.max(most, kept.length * 8))
    await sleep(5)
  }
  for (const child of children) child.kill('SIGKILL')
}

/** Processes that make processes, until there is no room for another; then threads. */
export async function processes(attack: Attack): Promise<void> {
  const bomb = spawn('/bin/sh', ['-c', 'f() { f | f & }; f; sleep 600'], { stdio: 'ignore', detached: true })
  bomb.on('error', () => {})
  let most = 0
  const workers: Worker[] = []
  while (!attack.isOver()) {
    const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore', detached: true })
    child.on('error', () => {})
    if (workers.length < 200 && attack.random.chance(0.1)) {
      const worker = new Worker('setInterval(() => {}, 1000)', { eval: true })
      worker.on('error', () => {})
      workers.push(worker)
    }
    const alive = readdirSync('/proc').filter(name => /^\d+$/.test(name)).length
    if (alive > most) note(attack, 'processes', alive)
    most = Math.max(most, alive)
    await sleep(1)
  }
  // Nobody is left to say how it ended.
  process.kill(-1, 'SIGKILL')
}

const megabyte = Buffer.alloc(1 << 20, 'x')
/** Its folder has no limit of its own (docs/security.md), and the disk is not ours to fill. */
const mostInFolder = 200

/** All the space of its temporary folders, and some of the disk. */
export async function bytes(attack: Attack): Promise<void> {
  const made: string[] = []
  const fill = (place: string, most: number) => {
    const path = join(place, 'filled')
    made.push(path)
    const fd = openSync(path, 'w')
    let written = 0
    succeeds(() => {
      while (written < most && !attack.isOver()) written += writeSync(fd, megabyte) / megabyte.length
    })
    closeSync(fd)
    note(attack, `MB in ${place}`, Math.round(written))
  }
  fill(places.temporary, 4096)
  fill(places.memory, 4096)
  fill(places.home, mostInFolder)
  for (const drop of drops) fill(join(places.ipc, drop), 50)
  const sparse = openSync(join(places.group, 'sparse'), 'w')
  if (succeeds(() => ftruncateSync(sparse, 2 ** 43))) note(attack, 'GB that are not there', 2 ** 13)
  closeSync(sparse)
  while (!attack.isOver()) {
    const id = attack.freshId()
    // Large, and allowed: what it costs is its own turn.
    attack.post(
      'tasks',
      JSON.stringify({ version: 1, id, type: 'send_message', payload: { text: 'x'.repeat(900_000) } }),
    )
    await attack.breathe()
    await sleep(10)
  }
  for (const path of [...made, join(places.group, 'sparse')]) rmSync(path, { force: true })
}

/** Files without content, in thousands, beside those that are posted; and one directory in another, in thousands. */
export async function inodes(attack: Attack): Promise<void> {
  const litter = join(places.ipc, 'tasks')
  let count = 0
  const beside = join(places.temporary, 'many')
  mkdirSync(beside, { recursive: true })
  while (!attack.isOver() && count < 60_000) {
    const made = succeeds(() => {
      writeFileSync(join(beside, String(count)), '')
      if (count < 10_000) writeFileSync(join(litter, `${count}.json.tmp`), '')
    })
    if (!made) break
    if (count++ % 200 === 0) await sleep(1)
  }
  note(attack, 'files that are not posted', count)
  let depth = 0
  const home = process.cwd()
  process.chdir(places.home)
  while (!attack.isOver() && depth < 5000) {
    if (!succeeds(() => mkdirSync('d')) || !succeeds(() => process.chdir('d'))) break
    if (depth++ % 500 === 0) await sleep(1)
  }
  process.chdir(home)
  note(attack, 'directories below each other', depth)
  await rest(attack)
  for (const name of readdirSync(litter))
    if (name.endsWith('.tmp')) succeeds(() => rmSync(join(litter, name)))
  succeeds(() => rmSync(beside, { recursive: true, force: true }))
  // Deeper than a path may be long: renamed up, piece by piece.
  let top = join(places.home, 'd')
  for (let n = 0; n < 6000 && existsSync(top); n++) {
    const next = join(places.home, `d${n}`)
    succeeds(() => renameSync(join(top, 'd'), next))
    succeeds(() => rmSync(top, { recursive: true }))
    top = next
  }
}

/** All handles a process may have, in several processes; and sockets, half open. */
export async function descriptors(attack: Attack): Promise<void> {
  const open: number[] = []
  while (succeeds(() => open.push(openSync('/proc/self/status', 'r'))) && open.length < 60_000)
    if (open.length % 1000 === 0) await sleep(1)
  note(attack, 'open files in one process', open.length)
  for (const fd of open.splice(0, 100)) closeSync(fd)
  const path = join(places.temporary, 'many.sock')
  const server = createServer(() => {}).listen(path)
  server.on('error', () => {})
  for (let n = 0; n < 40; n++) connect(path).on('error', () => {})
  await rest(attack)
  for (const fd of open) closeSync(fd)
  server.close()
  rmSync(path, { force: true })
}

/** Every instance and watch of inotify that its user may have. */
export async function watches(attack: Attack): Promise<void> {
  const children = Array.from({ length: 60 }, (_, n) => {
    const code = `const fs=require('fs');let w=[];try{for(let i=0;i<200;i++){const d='${places.temporary}/w'+i;fs.mkdirSync(d,{recursive:true});w.push(fs.watch(d,()=>{}).on('error',()=>{}))}}catch{};setTimeout(()=>{},60000)`
    const child = spawn(process.execPath, ['-e', code], { stdio: 'ignore' })
    child.on('error', () => {})
    if (n % 10 === 0) note(attack, 'processes with watches', n)
    return child
  })
  succeeds(() => watch(places.ipc, () => {}).on('error', () => {}))
  await rest(attack)
  for (const child of children) child.kill('SIGKILL')
}

/** Both outputs, without end, where its runner and the host read. */
export async function output(attack: Attack): Promise<void> {
  const line = `\u001b[31m${attack.known.marker.slice(0, 3)}${'y'.repeat(8000)}\n`
  let written = 0
  while (!attack.isOver()) {
    succeeds(() => {
      written += writeSync(1, line)
      written += writeSync(2, line)
    })
    if (written % 100 === 0) await sleep(0)
  }
  note(attack, 'MB printed', Math.round(written / 1e6))
}

/** As many posted files as it can write, in all directories at once. */
export async function flood(attack: Attack): Promise<void> {
  let posted = 0
  const settle = () => {
    attack.ledger.write({ kind: 'count', posted })
    posted = 0
  }
  for (let n = 0; !attack.isOver(); n++) {
    const drop = join(places.ipc, attack.random.pick(drops))
    const text =
      n % 10 === 0
        ? '{"type":"message","text":]'
        : JSON.stringify({ type: 'message', chatJid: attack.known.own.jid, text: `flood ${n}` })
    posted++
    if (posted === 100) {
      settle()
      await sleep(0)
    }
    writeFileSync(join(drop, `.flood`), text)
    renameSync(join(drop, `.flood`), join(drop, attack.freshName()))
  }
  settle()
}
