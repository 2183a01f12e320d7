/** The import rule of docs/architecture: who may know whom. `npm run check` fails on any other edge. */
const only = (name, from, allowed, why) => ({
  name,
  comment: why,
  severity: 'error',
  from: { path: from },
  to: { path: '^(packages|bench|scripts)/', pathNot: [from, ...allowed] },
})

module.exports = {
  forbidden: [
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
      ['^packages/(spool|protocol)/'],
      'the untrusted side, which goes into images',
    ),
    only(
      'cli-speaks-the-api',
      '^packages/cli/',
      [
        '^packages/protocol/',
        '^packages/spool/src/index',
        '^packages/host/src/(index|config|api|supervisor/index)\\.ts$',
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
      '^packages/web/',
      ['^packages/protocol/'],
      'a browser goes through the same API as people',
    ),
    {
      name: 'web-knows-types-only',
      comment: 'what the protocol is made of stays out of the page',
      severity: 'error',
      from: { path: '^packages/web/src' },
      to: { path: '^packages/protocol/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'protocol-does-no-io',
      severity: 'error',
      from: { path: '^packages/protocol/src', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'sqlite-stays-in-store',
      comment: 'one room knows how things are stored',
      severity: 'error',
      from: { path: '^packages/(host|cli)/src', pathNot: '^packages/host/src/store/' },
      to: { path: '^node:sqlite$|^sqlite$' },
    },
    {
      name: 'no-circles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'nothing-unresolved',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.mjs', '.js', '.cjs'],
    },
  },
}
