import { text } from 'node:stream/consumers'
import { command } from '../command.ts'
import { exitCodes, Failure } from '../failure.ts'
import { printLine } from '../output.ts'
import { withQuestions } from '../questions.ts'

const shortest = 8

export default command(
  'password',
  'create an entry for web.users from a password, typed or from standard input',
  {
    example: '< password-file',
    bare: true,
    async run() {
      const password = process.stdin.isTTY ? await typed() : (await text(process.stdin)).replace(/\r?\n$/, '')
      if (password.length < shortest)
        throw new Failure(`A password needs at least ${shortest} characters.`, exitCodes.refused)
      const { hashPassword } = await import('@hatchway/host')
      await printLine(await hashPassword(password))
    },
  },
)

const typed = () =>
  withQuestions(
    async ({ secret }) => {
      const first = await secret('Password: ')
      if (first !== (await secret('Repeat password: ')))
        throw new Failure('The passwords are not the same.', exitCodes.refused)
      return first
    },
    { hidden: true, whenEnded: 'No password was given.' },
  )
