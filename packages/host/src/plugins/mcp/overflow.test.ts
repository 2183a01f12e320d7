import { expect, test } from 'vitest'
import { withinLimit } from './overflow.ts'

function folder() {
  const files = new Map<string, Buffer>()
  const options = {
    limitBytes: 10_000,
    name: 'odd_read',
    giveFile: async (name: string, content: Buffer) => {
      files.set(name, content)
      return `/group/${name}`
    },
  }
  return { files, options }
}

test('what fits is passed on as it is', async () => {
  const { files, options } = folder()
  const answer = { content: [{ type: 'text', text: 'x'.repeat(9000) }] }
  expect(await withinLimit(answer, options)).toBe(answer)
  expect(files.size).toBe(0)
})

test('the largest parts become files until the rest fits, and each says where it is', async () => {
  const { files, options } = folder()
  const picture = Buffer.alloc(30_000, 7)
  const answer = {
    content: [
      { type: 'text', text: 'a small word' },
      { type: 'image', data: picture.toString('base64'), mimeType: 'image/png' },
      { type: 'text', text: 'y'.repeat(20_000) },
      { type: 'resource', resource: { uri: 'a:b', blob: picture.toString('base64'), mimeType: '../../x' } },
    ],
    isError: false,
  }
  const told = await withinLimit(answer, options)
  expect(told).toMatchObject({
    isError: false,
    content: [
      { text: 'a small word' },
      {
        type: 'text',
        text: 'This image is too large to be shown here. All of it (30000 bytes) is in the file /group/odd_read-2.png.',
      },
      { text: expect.stringContaining('This text is too large') },
      { text: expect.stringContaining('/group/odd_read.bin') },
    ],
  })
  expect([...files.keys()]).toEqual(['odd_read.bin', 'odd_read-2.png', 'odd_read-3.txt'])
  expect(files.get('odd_read-2.png')).toEqual(picture)
  expect(files.get('odd_read-3.txt')?.toString()).toBe('y'.repeat(20_000))
})

test('a structured answer becomes a file, too', async () => {
  const { files, options } = folder()
  const structuredContent = { rows: Array.from({ length: 5000 }, (_, i) => i) }
  const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
  const told = await withinLimit({ content, structuredContent }, options)
  expect(JSON.stringify(told).length).toBeLessThan(10_000)
  expect(told).not.toHaveProperty('structuredContent')
  expect(JSON.parse(files.get('odd_read.json')?.toString() ?? '')).toEqual(structuredContent)
})

test('what consists of too many small parts, or is no answer, stays as it is, and is refused later', async () => {
  const { files, options } = folder()
  const many = { content: Array.from({ length: 5000 }, () => ({ type: 'text', text: 'small' })) }
  expect(await withinLimit(many, options)).toEqual(many)
  const numbers = { content: Array.from({ length: 20_000 }, () => 1) }
  expect(await withinLimit(numbers, options)).toBe(numbers)
  const strange = { content: 'x'.repeat(20_000) }
  expect(await withinLimit(strange, options)).toBe(strange)
  expect(files.size).toBe(0)
})
