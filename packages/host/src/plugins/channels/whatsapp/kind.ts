import { defineKind } from '../kind.ts'
import { whatsappSettings } from './settings.ts'

export const whatsapp = defineKind({
  name: 'whatsapp',
  title: 'WhatsApp',
  settings: whatsappSettings,
  questions: [
    {
      key: 'own',
      question:
        'Is this your own number, at which people write to you? (yes or no; empty: no, it is the assistant’s)',
    },
    {
      key: 'phone',
      question: 'Phone number of the account, to type a code on its phone (empty: scan a QR code with it)',
    },
  ],
  next: [
    'On the phone of the account: Settings, Linked devices, Link a device. Scan the QR code, or choose “Link with phone number instead” and type the code.',
    'Write to the account from another phone: the chat asks to be let in. With your own number, register your chat with yourself instead (see docs/channels/whatsapp.md).',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['quotes', 'files', 'reactions', 'edits', 'deletions', 'typing', 'absence'],
  library: ['baileys'],
  load: () => import('./channel.ts'),
})
