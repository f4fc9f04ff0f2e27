import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as rukh from "rukh";

import { file } from "./files.js";

const here = file("bindings/node");
const node = (script, environment = {}) =>
  spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: here,
    encoding: "utf8",
    env: { ...process.env, ...environment },
    timeout: 60_000,
  });

test("the types name what the package exports", () => {
  const types = readFileSync(file("bindings/node/lib/index.d.ts"), "utf8");
  const declared = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map((match) => match[1]);
  assert.deepEqual(declared.sort(), Object.keys(rukh).sort());
});

test("the package has the library's version", () => {
  const { version } = JSON.parse(readFileSync(file("bindings/node/package.json"), "utf8"));
  const [, library] = /^version = "(.*)"$/m.exec(readFileSync(file("Cargo.toml"), "utf8"));
  assert.equal(version, library);
});

test("the digits example recognises the held-out images", () => {
  const out = execFileSync(process.execPath, [file("bindings/node/examples/digits.mjs")], { encoding: "utf8" });
  assert.match(out, /of 360 right: (9[789]|100)/);
});

test("what is published has the library's layer, its types and the licences, and nothing else", () => {
  const packed = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: here, encoding: "utf8" }));
  const names = packed[0].files.map(({ path }) => path);
  for (const name of ["package.json", "README.md", "lib/index.js", "lib/index.d.ts", "lib/functions.js", "LICENSE-MIT"]) {
    assert.ok(names.includes(name), `${name} is not among ${names}`);
  }
  assert.deepEqual(names.filter((name) => !/^(lib\/|package\.json|README\.md|LICENSE-)/.test(name)), []);
});

test("a library that is not there is named with how to name another", () => {
  const done = node('import { libraryVersion } from "rukh"; libraryVersion()', { RUKH_LIBRARY: "/nowhere/librukh.so" });
  assert.notEqual(done.status, 0);
  assert.match(done.stderr, /set RUKH_LIBRARY to its path.*\/nowhere\/librukh\.so/);
});

test("a program ends that disposes nothing, with a log", () => {
  const model = JSON.stringify(file("examples/digits/digits.onnx"));
  const done = node(`
    import { Environment, Session, Tensor } from "rukh";
    const environment = new Environment({ log: (level, text) => console.log(level, text), logLevel: "debug" });
    const session = await Session.open(${model}, { environment });
    await session.run({ image: new Tensor(new Float32Array(64), [1, 1, 8, 8]) });
    console.log("ran");
  `);
  assert.equal(done.status, 0, done.stderr);
  assert.match(done.stdout, /opened model[^]*ran/);
});
