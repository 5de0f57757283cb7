const { execFileSync } = require("node:child_process");
const { readFileSync } = require("node:fs");

const text = readFileSync(process.argv[2], "utf8");
const ours = text.split(/\s+/).filter(Boolean).length;
const theirs = Number(execFileSync("./count", { input: text }).toString());
console.log(`node: ${ours} words`);
process.exit(ours === theirs ? 0 : 1);
