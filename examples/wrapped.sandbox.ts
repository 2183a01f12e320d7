import type { Sandbox } from '../packages/host/src/sandboxes/types.ts'

/**
 * A sandbox that starts its runs in another one behind a program of your own: `['nice', '-n', '10']`, say, or one that
 * takes the network away. It cannot know how much that isolates, so it promises no more than the one inside.
 */
export const wrapped = (inner: Sandbox, wrapper: readonly string[]): Sandbox => ({
  ...inner,
  async check() {
    const { available, reason } = await inner.check()
    return { available, reason: `${reason} Runs start behind ${wrapper[0]}.` }
  },
  async start(spec) {
    // An image's own program is not known out here.
    if (!spec.command) throw new Error('A run without a command cannot be wrapped.')
    return inner.start({ ...spec, command: [...wrapper, ...spec.command] })
  },
})
