#!/usr/bin/env node
// A worker for `summarize` in JavaScript, with nothing but Node.js: JSON on stdin, text on stdout.
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf8"));
const { folder, total, used } = task.inputs;
if (!(total > 0)) {
  console.error("inputs.total is not a positive number");
  process.exit(1);
}

const gib = (kib) => `${(kib / 2 ** 20).toFixed(1)} GiB`;
const percent = Math.round((100 * used) / total);
console.log(`${folder} uses ${gib(used)} of ${gib(total)} (${percent} %).`);
console.log(percent > 90 ? "It is nearly full." : "There is room.");
