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
        '^packages/host/src/(index|config|api/index)\\.ts$',
      ],
      'people go through the same API as the console',
    ),
    {
      name: 'protocol-does-no-io',
      severity: 'error',
      from: { path: '^packages/protocol/src', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'sqlite-stays-in-store',
      comment: 'the store must be able to sit on PostgreSQL',
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
      extensions: ['.ts', '.mjs', '.js', '.cjs'],
    },
  },
}
