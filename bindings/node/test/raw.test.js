import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as constants from "rukh/constants";
import { RukhError } from "rukh";
import { raw } from "rukh/raw";

import { checkVersion, declare } from "../lib/raw.js";
import { FUNCTIONS, SINCE } from "../lib/functions.js";
import { file } from "./files.js";

const api = JSON.parse(readFileSync(file("abi/rukh-api.json"), "utf8"));

test("every function of the description is there and can be declared", () => {
  const found = raw.abi_version();
  assert.deepEqual(Object.keys(raw), api.functions.map(({ name }) => name.slice("rukh_".length)));
  for (const { name, since, parameters } of api.functions) {
    const short = name.slice("rukh_".length);
    assert.equal(FUNCTIONS[short][1].length, parameters.length, name);
    const [major, minor, patch] = since.split(".").map(Number);
    if (major * 1e6 + minor * 1000 + patch <= found) {
      assert.ok(!raw[short].toString().includes("throw new RukhError"), `${name} is not in the library`);
    }
  }
});

test("every constant of the description is there", () => {
  const groups = api.enums.map(({ name }) => name.replace(/(?:^rukh)?_(\w)/g, (_, letter) => letter.toUpperCase()));
  assert.deepEqual(Object.keys(constants).sort(), [...groups].sort());
  for (const [index, { values }] of api.enums.entries()) {
    const found = Object.entries(constants[groups[index]]);
    assert.deepEqual(found.map(([, number]) => number), values.map(({ value }) => value), groups[index]);
    found.forEach(([name], at) => assert.ok(values[at].name.endsWith(`_${name}`), name));
  }
});

test("statuses become errors with the library's text", () => {
  assert.throws(() => raw.value_element_count(null, [0]), {
    name: "RukhError",
    code: "RUKH_ERROR_INVALID_ARGUMENT",
    status: 1,
    message: /NULL|null/,
  });
  assert.equal(new RukhError(999, "later").code, "RUKH_ERROR_999");
});

test("a function that the library does not have says so when it is called", async () => {
  const older = {
    path: "/usr/lib/librukh.so.0.1",
    handle: {
      func() {
        throw new Error("Cannot find function");
      },
    },
  };
  const [newest, since] = Object.entries(SINCE)[0];
  const call = declare(older, newest);
  const said = new RegExp(`rukh_${newest} came with binary interface ${since}; /usr/lib/librukh`);
  assert.throws(() => call(), said);
  await assert.rejects(() => call.async(), said);
  assert.throws(() => declare(older, "value_kind")(), /belongs to every librukh of this series/);
});

test("libraries of another series are refused", () => {
  for (const version of [1000, 1001, 1999]) {
    checkVersion(version);
  }
  for (const [version, text] of [[2000, "0.2.0"], [1_001_000, "1.1.0"]]) {
    assert.throws(() => checkVersion(version), new RegExp(`interface ${text}; .* series 0\\.1$`));
  }
});
