import { command } from '../command.ts'
import { tailInputs } from '../tail/options.ts'

export default command(
  'tail',
  'commands as they are handled; on a terminal a full-screen view, where ? lists the keys',
  {
    example: '--group family\n--plain --lines 100 --decision refused',
    input: tailInputs,
    async run(given) {
      const isFullScreen =
        process.stdin.isTTY &&
        process.stdout.isTTY &&
        process.env.TERM !== 'dumb' &&
        !given.json &&
        !given.plain
      if (isFullScreen) return (await import('../tail/full-screen.ts')).showFullScreen(given)
      return (await import('../tail/lines.ts')).printLines(given)
    },
  },
)
