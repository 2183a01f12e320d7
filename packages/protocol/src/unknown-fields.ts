/**
 * What is said about a field that does not exist: under which name it may have been meant. The name was chosen by
 * whoever wrote the file, so only a short one of plain characters is shown.
 */
const showable = /^[A-Za-z0-9_-]{1,40}$/

/** What writers call our fields, where that is not merely another spelling. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  attachments: ['file', 'files', 'attachment', 'media', 'images', 'documents'],
  text: ['message', 'body', 'content', 'msg', 'question', 'reply'],
  jid: ['chat', 'chatjid', 'chatid', 'targetjid', 'to', 'recipient', 'channel'],
  group: ['targetgroup', 'groupfolder', 'folder'],
  task_id: ['id', 'task'],
  prompt: ['instructions', 'instruction', 'description', 'message', 'text', 'task'],
  schedule: ['cron', 'schedulevalue', 'scheduletype', 'when', 'interval'],
  schedule_value: ['cron', 'schedule', 'interval', 'when', 'at', 'time', 'value', 'expression'],
  schedule_type: ['type', 'kind'],
  timezone: ['tz', 'zone'],
  instructions: ['claudemd', 'systemprompt', 'system'],
  head: ['headsha', 'commit', 'sha', 'revision'],
  rebuild: ['rebuildcontainer', 'build'],
  cwd: ['directory', 'dir', 'workingdirectory'],
  command: ['cmd', 'script', 'shell'],
  timeout_seconds: ['timeout', 'timeoutms'],
  tool: ['name', 'service', 'toolname'],
  arguments: ['args', 'params', 'parameters', 'input'],
  questions: ['question', 'prompt', 'text'],
  question: ['text', 'prompt', 'title'],
  options: ['choices', 'answers'],
  label: ['text', 'name', 'title', 'value'],
  path: ['file', 'filename', 'filepath', 'url', 'src'],
  name: ['filename', 'title', 'caption'],
  message: ['text', 'prompt', 'content'],
  sent_at: ['timestamp', 'time', 'date', 'createdat'],
  id: ['requestid', 'uuid'],
}

/** Fields are `snake_case` here and `camelCase` elsewhere. */
const plain = (name: string): string => name.replaceAll(/[_-]/g, '').toLowerCase()

/** How many letters have to be added, removed, changed or swapped with their neighbour. */
const distance = (a: string, b: string): number => {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (isSame ? 0 : 1))
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) least = Math.min(least, (before[j - 2] ?? 0) + 1)
      next.push(least)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** The known name that was most likely meant; undefined: none is near enough. */
export const nearestName = (name: string, known: readonly string[]): string | undefined => {
  if (!showable.test(name)) return undefined
  const wanted = plain(name)
  const spelled = known.find(each => plain(each) === wanted)
  if (spelled !== undefined) return spelled
  const named = known.find(each => Object.hasOwn(otherNames, each) && otherNames[each]?.includes(wanted))
  if (named !== undefined) return named
  const [nearest] = known
    .map(each => ({ each, far: distance(wanted, plain(each)) }))
    .filter(({ each, far }) => far <= Math.floor(Math.min(wanted.length, plain(each).length) / 3))
    .toSorted((a, b) => a.far - b.far)
  return nearest?.each
}

export const shownName = (name: string): string => (showable.test(name) ? name : '?')

/** The rule that an unknown field breaks, in words. */
export const noSuchField = (name: string, known: readonly string[]): string => {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `there is no such field; did you mean ${nearest}?`
  return known.length === 0
    ? 'there is no such field; none is expected here'
    : `there is no such field; known are ${known.join(', ')}`
}
