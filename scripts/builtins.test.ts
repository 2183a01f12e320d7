import { expect, test } from 'vitest'
import { takeBuiltins } from './builtins.ts'

test('what is imported from Node is taken, and only that, as it is used', () => {
  const made = takeBuiltins(
    `#!/usr/bin/env node
import { other } from "./other.mjs";
import path, { join as joined, sep } from "node:path";
import process from "node:process";
import * as url from "node:url";import{inspect as i,default as u}from"node:util";
import "./effects.mjs";
//#region example
const text = 'import { rm } from "node:fs";';
`,
  )
  expect(made).toBe(
    `#!/usr/bin/env node
import { other } from "./other.mjs";
const path = globalThis.process.getBuiltinModule("node:path"), { join: joined, sep } = path;
const process = globalThis.process.getBuiltinModule("node:process");
const url = globalThis.process.getBuiltinModule("node:url");const {inspect: i,default: u} = globalThis.process.getBuiltinModule("node:util");
import "./effects.mjs";
//#region example
const text = 'import { rm } from "node:fs";';
`,
  )
})
