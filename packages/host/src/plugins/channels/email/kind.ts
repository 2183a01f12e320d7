import { defineKind } from '../kind.ts'
import { emailSettings } from './settings.ts'

export const email = defineKind({
  name: 'email',
  title: 'E-mail',
  settings: emailSettings,
  questions: [
    { key: 'address', question: 'E-mail address of the assistant, with a mailbox of its own' },
    { key: 'user', question: 'User name at the mail server (empty: the address)' },
    { key: 'password', question: 'Password (many providers want an app password here)', isSecret: true },
    { key: 'imap', question: 'IMAP server, such as imap.example.org' },
    { key: 'smtp', question: 'SMTP server, such as smtp.example.org' },
    {
      key: 'authserv',
      question:
        'Name in the Authentication-Results header of mail in this mailbox: the first word after the colon',
    },
  ],
  next: [
    'Write a mail to this address from your own: you are told that the operator has been asked.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
    'No answer? Run: npx hatchway channels list. It says why the last mail was refused.',
  ],
  does: ['threads', 'quotes', 'files', 'absence'],
  library: ['imapflow', 'nodemailer', 'postal-mime'],
  load: () => import('./channel.ts'),
})
