/** What tests share. Tests of every package may import it; source may not (`source-does-not-import-tests`). */
const testing = '^packages/testing/'

/** The import rule of docs/architecture: who may know whom. `npm run check` fails on any other edge. */
const only = (name, from, allowed, why) => ({
  name,
  comment: why,
  severity: 'error',
  from: { path: from },
  to: { path: '^(packages|bench|scripts)/', pathNot: [from, testing, ...allowed] },
})

/** The rooms of packages/host/src, from the top down: each may import those after it. docs/architecture.md says why. */
const rooms = [
  'import',
  'assemble',
  'doctor',
  'client',
  'plugins',
  'plugin-api',
  'api',
  'backup',
  'runs',
  'chat',
  'services',
  'intake',
  'outcomes',
  'commands',
  'guard',
  'sandboxes',
  'store',
  'supervisor',
  'base',
  'config',
]
/** What packages export stands beside the rooms, above them; settings are at the bottom. */
const entries = ['index', 'api', 'api-types', 'plugin', 'service']
const tests = '\\.test\\.ts$|/testing(/|\\.ts$)'
const downwards = rooms.map((room, i) => ({
  name: `host-${room}-imports-downwards`,
  severity: 'error',
  from: {
    path: `^packages/host/src/${room}[/.]`,
    pathNot: [tests, `^packages/host/src/(${entries.join('|')})\\.ts$`],
  },
  to: {
    path: [
      `^packages/host/src/(${entries.join('|')})\\.ts$`,
      ...(i === 0 ? [] : [`^packages/host/src/(${rooms.slice(0, i).join('|')})/`]),
    ],
    // A plugin's settings are part of the configuration; they import nothing but zod and kinds of values.
    pathNot: '^packages/host/src/plugins/[^/]+/settings\\.ts$',
  },
}))

module.exports = {
  forbidden: [
    ...downwards,
    {
      name: 'plugin-settings-are-leaves',
      severity: 'error',
      from: { path: '^packages/host/src/plugins/[^/]+/settings\\.ts$' },
      to: { path: '^packages/', pathNot: '^packages/(protocol/|host/src/config/values)' },
    },
    {
      name: 'plugins-do-not-know-each-other',
      severity: 'error',
      from: { path: '^packages/host/src/plugins/([^/]+)/', pathNot: tests },
      to: { path: '^packages/host/src/plugins/', pathNot: '^packages/host/src/plugins/$1/' },
    },
    {
      name: 'source-does-not-import-tests',
      severity: 'error',
      comment: 'types included; the benchmark may import what tests share',
      from: { path: '^(packages|scripts)/', pathNot: [tests, testing, '^packages/web/tests/'] },
      to: { path: [tests, testing, '^packages/web/tests/'] },
    },
    only(
      'spool-stands-alone',
      '^packages/spool/',
      [],
      'spool is files without meaning; it could be published alone',
    ),
    only('protocol-stands-alone', '^packages/protocol/', [], 'protocol is meaning without I/O'),
    only(
      'host-knows-spool-and-protocol',
      '^packages/host/',
      ['^packages/(spool|protocol)/'],
      'the trusted side',
    ),
    only(
      'agent-knows-spool-and-protocol',
      '^packages/agent/',
      ['^packages/(spool|protocol)/', '^scripts/(newest|builtins)'],
      'the untrusted side, which goes into images',
    ),
    only(
      'cli-speaks-the-api',
      '^packages/cli/',
      [
        '^packages/protocol/',
        '^packages/spool/src/index',
        '^packages/host/src/(index|config|config/names|plugin|service|api|base/parts|base/platform|supervisor/index)\\.ts$',
        '^scripts/(newest|builtins)',
      ],
      'people go through the same API as the console',
    ),
    {
      name: 'supervisor-is-plain',
      comment: 'it is loaded whole at its start, and a bad revision must not keep it from starting',
      severity: 'error',
      from: { path: '^packages/host/src/supervisor/', pathNot: '\\.test\\.ts$' },
      to: {
        dependencyTypesNot: ['core'],
        pathNot: '^packages/host/src/(supervisor/|base/lock-file|base/processes)',
      },
    },
    only(
      'web-speaks-the-api',
      '^packages/web/(?!tests/)',
      ['^scripts/newest', '^packages/protocol/', '^packages/host/src/api-types\\.ts$'],
      'a browser goes through the same API as people',
    ),
    {
      name: 'web-knows-types-only',
      comment: 'what the protocol and the host are made of stays out of the page',
      severity: 'error',
      from: { path: '^packages/web/src' },
      to: {
        path: '^packages/(protocol|host)/',
        // Lists of names, and no code.
        pathNot: '^packages/protocol/src/names\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'protocol-does-no-io',
      severity: 'error',
      from: { path: '^packages/protocol/src', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'sqlite-stays-in-store',
      comment:
        'one room knows how things are stored; the lock of a data directory is a lock of SQLite; each group’s memories and the keys of Matrix and WhatsApp are databases of their own',
      severity: 'error',
      from: {
        path: '^packages/(host|cli)/src',
        pathNot: [
          '^packages/host/src/(store/|base/(lock-file|sqlite)|plugins/memory/database/|plugins/channels/(whatsapp/session|matrix/key-store))',
          '\\.test\\.ts$',
        ],
      },
      to: { path: '^node:sqlite$|^sqlite$|^packages/host/src/base/sqlite' },
    },
    {
      name: 'no-circles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'nothing-unresolved',
      comment: 'what the build makes is not there in a fresh clone',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^\\.\\./dist/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: 'node_modules|^packages/[^/]+/dist/' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.mjs', '.js', '.cjs'],
    },
  },
}
