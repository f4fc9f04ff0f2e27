import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { file } from "./files.js";

for (const page of ["bindings/node/README.md", "docs/bindings.md"]) {
  const text = readFileSync(file(page), "utf8");
  const blocks = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1]);

  test(`the examples of ${page} run`, () => {
    assert.ok(blocks.length > 0, `${page} has no example`);
    for (const block of blocks) {
      const script = `process.chdir(${JSON.stringify(file("examples/digits"))});\n${block}`;
      const done = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
        cwd: file("bindings/node"),
        encoding: "utf8",
        timeout: 60_000,
      });
      assert.equal(done.status, 0, `${block}\n${done.stderr}`);
    }
  });
}
