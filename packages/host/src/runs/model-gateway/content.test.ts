import { expect, test } from 'vitest'
import { contentFor, type RuledContent } from './content.ts'
import { createContentCheck } from './content-check.ts'

const judged = (kind: RuledContent, body: unknown) => {
  const checked = contentFor(Buffer.from(JSON.stringify(body)), kind)
  return 'problem' in checked ? checked.problem : JSON.parse(checked.bytes.toString())
}
const image = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
const page = 'https://example.org/?what=was+read'
const said = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })
const part = (...parts: unknown[]) => ({ contents: [{ role: 'user', parts }] })

test.each<[RuledContent, object]>([
  ['messages', { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: page }], stream: true }],
  ['messages', said({ type: 'text', text: page }, { type: 'image', source: image })],
  [
    'messages',
    said({ type: 'document', source: { type: 'content', content: [{ type: 'image', source: image }] } }),
  ],
  ['messages', said({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: image }] })],
  // What a tool of the agent's own is called with is its own affair.
  ['messages', said({ type: 'tool_use', id: 't', name: 'x', input: { source: { type: 'url', url: page } } })],
  [
    'messages',
    {
      tools: [
        { name: 'x', input_schema: {} },
        { type: 'custom', name: 'y', input_schema: {} },
      ],
    },
  ],
  ['messages', { tools: [{ type: 'bash_20250124', name: 'bash' }], mcp_servers: [], container: null }],
  [
    'completions',
    said({ type: 'text', text: page }, { type: 'image_url', image_url: { url: 'data:image/png,x' } }),
  ],
  [
    'completions',
    { model: 'qwen3:8b', tools: [{ type: 'function', function: { name: 'x' } }], messages: [] },
  ],
  [
    'completions',
    said({ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' } }),
  ],
  [
    'completions',
    said({ type: 'text', text: page }, { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
  ],
  [
    'responses',
    {
      input: [
        { role: 'assistant', content: [{ type: 'output_text', text: page, annotations: [{ url: page }] }] },
      ],
    },
  ],
  ['responses', { input: page, store: false, include: ['reasoning.encrypted_content'] }],
  [
    'responses',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png,x' }] }] },
  ],
  ['responses', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'x' }] }] }],
  ['responses', { input: [{ type: 'function_call_output', call_id: 'c', output: page }] }],
  ['generate', { ...part({ text: page }), tools: [{ functionDeclarations: [{ name: 'x' }] }] }],
  ['generate', part({ inlineData: { mimeType: 'image/png', data: 'AA' } })],
])('%s: %j is sent as it is', (kind, body) => {
  expect(judged(kind, body)).toEqual(body)
})

test.each<[RuledContent, object]>([
  ['messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ['messages', { tools: [{ type: 'web_fetch_20260318', name: 'web_fetch' }] }],
  ['messages', { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }],
  ['messages', { tools: [{ type: 'a_tool_of_tomorrow', name: 'x' }] }],
  ['messages', { tools: [{ name: 'x' }, { type: 'mcp_toolset', mcp_server_name: 'y' }] }],
  ['messages', { mcp_servers: [{ type: 'url', url: page, name: 'x' }] }],
  ['messages', { container: 'container_1' }],
  ['messages', { thread: { type: 'continue', id: 'x' } }],
  ['messages', { a_field_of_tomorrow: true }],
  ['messages', said({ type: 'image', source: { type: 'url', url: page } })],
  ['messages', said({ type: 'document', source: { type: 'file', file_id: 'file_1' } })],
  [
    'messages',
    said({ type: 'tool_result', content: [{ type: 'image', source: { type: 'url', url: page } }] }),
  ],
  [
    'messages',
    said({ type: 'document', source: { type: 'content', content: [{ source: { type: 'url' } }] } }),
  ],
  ['messages', said({ type: 'container_upload', file_id: 'file_1' })],
  ['completions', { web_search_options: {}, messages: [] }],
  ['completions', { plugins: [{ id: 'web' }], messages: [] }],
  ['completions', { model: 'openai/gpt-5:online', messages: [] }],
  ['completions', { tools: [{ type: 'openrouter:web_search' }] }],
  ['completions', said({ type: 'image_url', image_url: { url: page } })],
  ['completions', said({ type: 'image_url', image_url: page })],
  ['completions', said({ type: 'video_url', video_url: { url: page } })],
  ['completions', said({ type: 'file', file: { file_id: 'file-1' } })],
  ['completions', said({ type: 'file', file: { file_data: page } })],
  ['responses', { tools: [{ type: 'web_search' }] }],
  ['responses', { tools: [{ type: 'mcp', server_url: page }] }],
  ['responses', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'code_interpreter' }] }] }],
  ['responses', { previous_response_id: 'resp_1' }],
  ['responses', { conversation: 'conv_1' }],
  ['responses', { prompt: { id: 'pmpt_1' } }],
  ['responses', { background: true }],
  ['responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: page }] }] }],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_url: page }] }] }],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] }],
  [
    'responses',
    { input: [{ type: 'function_call_output', output: [{ type: 'input_image', image_url: page }] }] },
  ],
  ['responses', { input: [{ type: 'computer_call_output', output: { image_url: page } }] }],
  ['generate', { tools: [{ googleSearch: {} }] }],
  ['generate', { tools: [{ functionDeclarations: [], urlContext: {} }] }],
  // Google's API takes one thing for a list of one.
  ['generate', { tools: { googleSearch: {} } }],
  ['generate', { contents: { parts: { functionResponse: { parts: { file_data: { file_uri: page } } } } } }],
  ['messages', { tools: { type: 'web_fetch_20260318', name: 'web_fetch' } }],
  [
    'messages',
    { messages: { role: 'user', content: { type: 'image', source: { type: 'url', url: page } } } },
  ],
  ['completions', { messages: { role: 'user', content: { type: 'image_url', image_url: page } } }],
  ['responses', { input: { role: 'user', content: { type: 'input_image', image_url: page } } }],
  // Other servers have other names for what they fetch.
  ['completions', said({ type: 'document_url', document_url: page })],
  ['completions', said({ type: 'input_audio', input_audio: page })],
  ['completions', said({ type: 'input_audio', input_audio: { data: page, format: 'wav' } })],
  ['completions', said({ type: 'video', video: ['data:image/png,x', ` ${page}`] })],
  ['completions', { model: 'openai/gpt-5:online:nitro', messages: [] }],
  ['completions', { model: 'gpt-4o-mini-search-preview-2025-03-11', messages: [] }],
  ['completions', { model: 'perplexity/sonar-pro', messages: [] }],
  ['responses', { model: 'openai/gpt-5:online' }],
  ['responses', { model: 'o4-mini-deep-research' }],
  ['generate', { cachedContent: 'cachedContents/1' }],
  ['generate', part({ fileData: { fileUri: page } })],
  ['generate', { contents: { parts: { file_data: { file_uri: page } } } }],
  ['generate', { systemInstruction: { parts: [{ fileData: { fileUri: page } }] } }],
  ['generate', part({ functionResponse: { name: 'x', parts: [{ fileData: { fileUri: page } }] } })],
])('%s: %j is a way out, and refused', (kind, body) => {
  expect(judged(kind, body)).toMatch(/^The host does not forward /)
})

test('streams of Chat Completions are asked for what they cost', () => {
  expect(judged('completions', { stream: true, stream_options: { include_obfuscation: false } })).toEqual({
    stream: true,
    stream_options: { include_obfuscation: false, include_usage: true },
  })
  expect(judged('responses', { stream: true })).toEqual({ stream: true })
})

test.each(['', 'x', '[]', 'null', '"{}"', '{"a":', '['.repeat(1_000_000)])(
  'what is no object is refused',
  text => {
    expect(contentFor(Buffer.from(text), 'messages')).toHaveProperty('problem')
  },
)

test('what is nested as deep as it goes is refused, and ends nothing', () => {
  const deep = (depth: number) => `{"messages":${'[{"content":'.repeat(depth)}1${'}]'.repeat(depth)}}`
  expect(contentFor(Buffer.from(deep(100_000)), 'messages')).toEqual({
    problem: 'The body is nested too deeply.',
  })
  expect(contentFor(Buffer.from(deep(10)), 'messages')).toHaveProperty('bytes')
})

test('large bodies are judged aside by the same rules', async () => {
  const contents = createContentCheck()
  const large = (more: object) => Buffer.from(JSON.stringify({ system: 'x'.repeat(1_000_000), ...more }))
  const harmless = large({})
  const found = await Promise.all([
    contents.check(harmless, 'messages'),
    contents.check(large({ mcp_servers: [{ url: page }] }), 'messages'),
  ])
  await contents.close()
  expect(found[0]).toHaveProperty('bytes', new Uint8Array(harmless))
  expect(found[1]).toHaveProperty('problem')
})
